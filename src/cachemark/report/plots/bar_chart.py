"""Bar charts: a bar for each figure, with its interval, its value, and its trials as dots.

Positions are computed here, in pixels: on a wide plot, names have a column beside the bars; on a
narrow one, they have a line above them.
"""

from collections.abc import Sequence
from itertools import groupby

import msgspec

from cachemark.analysis.statistics import Interval
from cachemark.report.document import Spec
from cachemark.report.plots.layout import (
    PlotArea,
    is_wide,
    plot_area,
    shorten,
    six_digits,
    specification,
    text_layer,
    text_width,
)
from cachemark.report.plots.palette import ColourRole, light

_NAME_LINE = 17
_LEGEND_LINE = 18
# The longest axis, in lengths of the longest bar: a longer one would make all bars slivers.
_MAX_AXIS_FACTOR = 1.6


class BarItem(msgspec.Struct, frozen=True, kw_only=True):
    """One bar: its name, its figure with its interval, and texts that describe it.

    `ratio` is the figure relative to the first, in words. `hollow`: drawn as an outline, as a
    single trial says less than several do.
    """

    label: str
    role: ColourRole
    of: Interval | None
    figure: str
    description: str
    ratio: str = ""
    dots: list[float] = []
    hollow: bool = False


class _Placed(msgspec.Struct, frozen=True, kw_only=True):
    item: BarItem
    top: float
    bottom: float


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    top: float
    bars: list[_Placed]


def bar_chart(
    items: Sequence[BarItem],
    width: int,
    *,
    axis: str,
    labels: str,
    key: Sequence[tuple[ColourRole, str]] = (),
) -> Spec:
    """A bar for each item; items that follow each other and have one `who` stand together.

    `axis` is the axis' title, `labels` the expression that writes its numbers, `key` what the
    colours mean where that has to be said.
    """
    single = len({item.label for item in items}) == len(items)
    area = _plot_area(items, width, single=single)
    groups, height = _layout(items, area, single=single)
    entries, lines = _legend_entries(key, width - area.left - 6)
    layers = [
        *_bar_layers(groups, height, area, axis, labels),
        *_interval_layers(groups),
        *_dot_layer(groups),
        *_text_layers(groups, area, single=single),
        *_legend_layers(entries, lines),
    ]
    top = 6 + (lines * _LEGEND_LINE + 6 if lines else 0)
    return specification(area, height, layers, top=top)


def axis_end(items: Sequence[BarItem]) -> float:
    """The end of the axis: the longest bar or dot, or an interval that is only a little longer."""
    known = [item.of for item in items if item.of]
    marks = [*(of.value for of in known), *(dot for item in items for dot in item.dots)]
    highs = [of.high for of in known if of.high is not None]
    longest = max(marks, default=1.0)
    return six_digits(1.02 * min(max([longest, *highs]), _MAX_AXIS_FACTOR * longest)) or 1.0


def clipped_note(items: Sequence[BarItem]) -> str:
    """A note if an interval is longer than the axis; empty if none is."""
    last = axis_end(items)
    some = any(item.of and item.of.high is not None and item.of.high > last for item in items)
    return "Arrow: the interval is longer than the axis." if some else ""


def _plot_area(items: Sequence[BarItem], width: int, *, single: bool) -> PlotArea:
    figures = [item.figure for item in items]
    area = plot_area(width, [item.label for item in items], figures)
    if is_wide(width) or single:
        return area
    right = plot_area(10_000, [], figures).right  # a column for figures, as several share a name
    return PlotArea(left=0, width=width - right - 6, right=right)


def _layout(items: Sequence[BarItem], area: PlotArea, *, single: bool) -> tuple[list[_Group], int]:
    thick = 14.0 if single else 12.0
    between = 14.0 if any(item.dots for item in items) else 10.0
    down = 0.0
    groups: list[_Group] = []
    for label, members in groupby(items, key=lambda item: item.label):
        top = down
        down += _NAME_LINE if area.names_above else 0
        placed: list[_Placed] = []
        for item in members:
            placed.append(_Placed(item=item, top=down, bottom=down + thick))
            down += thick + 2
        groups.append(_Group(label=label, top=top, bars=placed))
        down += between
    return groups, round(max(down - between / 2, thick))


def _domain(groups: list[_Group]) -> list[float]:
    """The axis starts at 0, because the length of a bar must be proportional to its figure."""
    return [0, axis_end([bar.item for group in groups for bar in group.bars])]


def _x(groups: list[_Group], field: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": _domain(groups), "nice": False},
    }


def _y(field: str, height: int | None = None) -> Spec:
    channel: Spec = {"field": field, "type": "quantitative", "axis": None}
    if height is not None:
        channel["scale"] = {"domain": [0, height], "reverse": True, "nice": False}
    return channel


def _bar_layers(
    groups: list[_Group], height: int, area: PlotArea, axis: str, labels: str
) -> list[Spec]:
    values = [
        {
            "hollow": bar.item.hollow,
            "value": six_digits(of.value),
            "from": 0,
            "top": bar.top,
            "bottom": bar.bottom,
            "colour": light(bar.item.role),
            "description": bar.item.description,
        }
        for group in groups
        for bar in group.bars
        if (of := bar.item.of)
    ]
    x = _x(groups, "value")
    x["axis"] = {
        "title": axis,
        "labelExpr": labels,
        "tickCount": max(3, area.width // 80),
        "titleAnchor": "start",
    }
    encoding = {
        "x": x,
        "x2": {"field": "from"},
        "y": _y("top", height),
        "y2": {"field": "bottom"},
        "color": {"field": "colour", "type": "nominal", "scale": None, "legend": None},
        "description": {"field": "description"},
    }
    filled = [value for value in values if not value["hollow"]]
    hollow = [value for value in values if value["hollow"]]
    outline = {"type": "rect", "filled": False, "strokeWidth": 1.5}
    layers = [
        *_marks(filled, {"type": "rect", "cornerRadiusEnd": 2}, encoding),
        *_marks(hollow, outline, encoding),
    ]
    # A chart without any bar still needs its axis.
    return layers or [{"data": {"values": []}, "mark": outline, "encoding": encoding}]


def _marks(values: list[Spec], mark: Spec, encoding: Spec) -> list[Spec]:
    """A layer with a mark for each value; none without values."""
    return [{"data": {"values": values}, "mark": mark, "encoding": encoding}] if values else []


def _interval_layers(groups: list[_Group]) -> list[Spec]:
    """A line for each interval, with marks at its ends, or an arrow if it exceeds the axis."""
    last = _domain(groups)[1]
    values = [
        {
            "low": six_digits(of.low),
            "high": six_digits(min(of.high, last)),
            "middle": (bar.top + bar.bottom) / 2,
            "top": (bar.top + bar.bottom) / 2 - 4,
            "bottom": (bar.top + bar.bottom) / 2 + 4,
            "whole": of.high <= last,
        }
        for group in groups
        for bar in group.bars
        if (of := bar.item.of) and of.low is not None and of.high is not None
    ]
    if not values:
        return []
    line = {"x": _x(groups, "low"), "x2": {"field": "high"}, "y": _y("middle")}
    feet = {
        side: {"x": _x(groups, side), "y": _y("top"), "y2": {"field": "bottom"}}
        for side in ("low", "high")
    }
    whole = [value for value in values if value["whole"]]
    drawn = [(values, line), (values, feet["low"]), (whole, feet["high"])]
    # A rim of the paper's colour keeps the line apart from a bar of any colour.
    rules: list[Spec] = [
        {"type": "rule", "color": light("paper"), "strokeWidth": 3.5, "aria": False},
        {"type": "rule", "color": light("ink"), "strokeWidth": 1.5, "aria": False},
    ]
    layers = [
        each for rule in rules for of, encoding in drawn for each in _marks(of, rule, encoding)
    ]
    arrow = {"type": "point", "shape": "triangle-right", "filled": True, "size": 46, "opacity": 1,
             "color": light("ink"), "aria": False}  # fmt: skip
    clipped = [value for value in values if not value["whole"]]
    return [*layers, *_marks(clipped, arrow, {"x": _x(groups, "high"), "y": _y("middle")})]


def _dot_layer(groups: list[_Group]) -> list[Spec]:
    values = [
        {"dot": six_digits(dot), "at": bar.bottom + 5}
        for group in groups
        for bar in group.bars
        for dot in bar.item.dots
    ]
    mark = {"type": "point", "filled": True, "size": 12, "opacity": 0.75, "aria": False,
            "shape": "circle", "color": light("faint")}  # fmt: skip
    return _marks(values, mark, {"x": _x(groups, "dot"), "y": _y("at")})


def _text_layers(groups: list[_Group], area: PlotArea, *, single: bool) -> list[Spec]:
    layers: list[Spec] = []
    for group in groups:
        layers.append(_name(group, area, room_for_figure=single))
        for bar in group.bars:
            on_name_line = area.names_above and single
            at = {
                "x": float(area.width if on_name_line else area.width + 8),
                "y": group.top + _NAME_LINE / 2 if on_name_line else (bar.top + bar.bottom) / 2,
            }
            align = "right" if on_name_line else "left"
            role: ColourRole = "ink" if bar.item.of else "faint"
            layers.append(text_layer(at, bar.item.figure, role, align=align))
    return layers


def _name(group: _Group, area: PlotArea, *, room_for_figure: bool) -> Spec:
    middle = (group.bars[0].top + group.bars[-1].bottom) / 2
    if area.names_above:
        words = shorten(group.label, area.width - (110 if room_for_figure else 0))
        return text_layer({"x": 0.0, "y": group.top + _NAME_LINE / 2}, words)
    words = shorten(group.label, area.left - 8)
    return text_layer({"x": -8.0, "y": middle}, words, align="right")


class _LegendEntry(msgspec.Struct, frozen=True, kw_only=True):
    role: ColourRole
    words: str
    across: float
    line: int


def _legend_entries(
    key: Sequence[tuple[ColourRole, str]], width: float
) -> tuple[list[_LegendEntry], int]:
    entries: list[_LegendEntry] = []
    across, line = 0.0, 0
    for role, words in key:
        needs = 15.0 + text_width([words])
        if entries and across + needs > width:
            across, line = 0.0, line + 1
        entries.append(_LegendEntry(role=role, words=words, across=across, line=line))
        across += needs + 22
    return entries, line + 1 if entries else 0


def _legend_layers(entries: list[_LegendEntry], lines: int) -> list[Spec]:
    layers: list[Spec] = []
    for entry in entries:
        mark = {"type": "point", "shape": "square", "filled": True, "size": 110,
                "opacity": 1, "color": light(entry.role), "aria": False}  # fmt: skip
        down = (entry.line - lines) * _LEGEND_LINE + 3.0
        at = {"x": {"value": entry.across + 5}, "y": {"value": down}}
        layers.append({"data": {"values": [{}]}, "mark": mark, "encoding": at})
        area = {"x": entry.across + 15, "y": down}
        layers.append(text_layer(area, entry.words, "faint", fontSize=11))
    return layers
