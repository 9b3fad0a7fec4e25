"""Line charts: one line for each client, told by colour, dash and shape, also beside its name."""

import math
from collections.abc import Callable, Sequence

import msgspec

from cachemark.report.document import Plot, Spec, Table, plain_table
from cachemark.report.plots.layout import (
    SI_LABEL,
    TIME_LABEL,
    PlotArea,
    is_wide,
    label_width,
    log_axis,
    separate,
    shorten,
    six_digits,
    specification,
    text_layer,
)
from cachemark.report.plots.palette import LineStyle, light, line_style

_MAX_NAMED_LINES = 16
# The dash and the shape of a line, before its name.
_SAMPLE, _SAMPLE_GAP = 24, 7
_MAX_NAMES = 190  # the widest column of names
_LABEL_GAP = 14.0
_LEGEND_LINE = 18
# The longest axis, as a multiple of the largest mark: intervals beyond it are cut.
_MAX_AXIS_FACTOR = 2.0
_SHARE_TICKS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


class ChartPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of a line; a point with a text is drawn as a shape."""

    x: float
    y: float
    description: str = ""
    low: float | None = None
    high: float | None = None


class ChartLine(msgspec.Struct, frozen=True, kw_only=True):
    """A client's line. `series`: the number of its style, which it has in every plot of a report.

    None: the yardstick, beside lines that have a number; or that of its place, if none has one.
    """

    label: str
    marks: list[ChartPoint]
    series: int | None = None


_Styled = Sequence[tuple[ChartLine, LineStyle]]


def line_plot(
    lines: Sequence[ChartLine],
    width: int,
    *,
    name: str,
    title: str,
    about: str,
    told: Callable[[ChartLine], str],
    x: Spec,
    y_title: str,
    table: Table,
    caption: str = "",
    subtitle: str = "",
    height: int = 240,
    y_labels: str = TIME_LABEL,
    shares: bool = False,
) -> Plot:
    """Lines as a plot. In words, it is a line chart of what it is `about`, and `told` each line."""
    unnamed = f" The first {_MAX_NAMED_LINES} are named; the others are thin."
    return Plot(
        name=name,
        title=title,
        caption=caption + (unnamed if len(lines) > _MAX_NAMED_LINES else ""),
        alt=f"Line chart of {about}: {'; '.join(map(told, lines))}.",
        spec=line_chart(
            lines, width, height, x=x, y_title=y_title, y_labels=y_labels, shares=shares
        ),
        subtitle=subtitle,
        table=table,
    )


def from_to(write: Callable[[ChartPoint], str]) -> Callable[[ChartLine], str]:
    """Tells a line by its first and its last point."""
    return lambda line: f"{line.label} from {write(line.marks[0])} to {write(line.marks[-1])}"


def points_table(
    columns: Sequence[str],
    lines: Sequence[ChartLine],
    x: Callable[[float], str],
    y: Callable[[float], str],
) -> Table:
    """A row for each point of each line."""
    rows = [[line.label, x(mark.x), y(mark.y)] for line in lines for mark in line.marks]
    return plain_table(columns, rows)


def rate_axis(title: str, width: int) -> Spec:
    """The axis of a plot over a rate in operations per second."""
    return {
        "type": "quantitative",
        "scale": {"zero": True, "nice": True},
        "axis": {"title": title, "labelExpr": SI_LABEL, "tickCount": max(3, width // 110)},
    }


def count_axis(title: str, counts: Sequence[int], beyond: float = 0.2) -> Spec:
    """The axis of numbers that follow each other. `beyond`: how far it reaches past both ends."""
    step = -(-len(counts) // 12)
    domain = [counts[0] - beyond, counts[-1] + beyond]
    return {
        "type": "quantitative",
        "scale": {"domain": domain, "nice": False, "zero": False},
        "axis": {"title": title, "values": list(counts[::step]), "format": "d"},
    }


def line_chart(
    lines: Sequence[ChartLine],
    width: int,
    height: int,
    *,
    x: Spec,
    y_title: str,
    y_labels: str = TIME_LABEL,
    shares: bool = False,
) -> Spec:
    """Figures over `x` (a channel without its field); sixteen lines are named.

    The axis is logarithmic; that of `shares` is linear, from 0 to 1.
    """
    styled = list(zip(lines, _styles(lines), strict=True))
    named = styled[:_MAX_NAMED_LINES]
    low, high, ticks = (0.0, 1.0, _SHARE_TICKS) if shares else log_axis(*_bounds(lines))
    area = _plot_area([line.label for line, _ in named], width)
    y = {
        "type": "quantitative",
        "scale": {"type": "linear" if shares else "log", "domain": [low, high], "nice": False},
        "axis": {"title": y_title, "values": ticks, "labelExpr": y_labels, "titleAnchor": "end"},
    }
    layers = [
        *_line_layers(styled, x, y),
        *_interval_layers(named, x, y),
        *_shape_layers(named, x, y),
    ]
    if area.right > 40:
        at = float if shares else math.log
        ends = [(at(of.marks[-1].y) - at(low)) / (at(high) - at(low)) for of, _ in named]
        layers += _labels(named, area, height, ends)
        return specification(area, height, layers, top=10)
    rows = math.ceil(len(named) / 2)
    layers += _legend_layers(named, area, rows)
    return specification(area, height, layers, top=14 + rows * _LEGEND_LINE)


def _styles(lines: Sequence[ChartLine]) -> list[LineStyle]:
    """The style of each line; no two lines have the same."""
    if all(line.series is None for line in lines):
        return [line_style(place) for place in range(len(lines))]
    grey = sorted(line.label for line in lines if line.series is None)
    return [
        line_style(grey.index(line.label), grey=True)
        if line.series is None
        else line_style(line.series)
        for line in lines
    ]


def _plot_area(names: Sequence[str], width: int) -> PlotArea:
    if is_wide(width):
        right = _SAMPLE + _SAMPLE_GAP + label_width(names, _MAX_NAMES)
        return PlotArea(left=62, width=width - 62 - right, right=right)
    return PlotArea(left=62, width=width - 62 - 24, right=24)


def _bounds(lines: Sequence[ChartLine]) -> tuple[float, float]:
    marks = [mark for line in lines for mark in line.marks]
    least = min((mark.y for mark in marks), default=1.0)
    most = max((mark.y for mark in marks), default=10.0)
    low = min([least, *(mark.low for mark in marks if mark.low is not None)])
    high = max([most, *(mark.high for mark in marks if mark.high is not None)])
    return max(low, least / _MAX_AXIS_FACTOR), min(high, most * _MAX_AXIS_FACTOR)


def _layer(style: LineStyle, mark: Spec, values: list[Spec], encoding: Spec) -> Spec:
    mark = {"color": light(style.role), "aria": False, **mark}
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def _line_layers(styled: _Styled, x: Spec, y: Spec) -> list[Spec]:
    layers: list[Spec] = []
    for place, (line, style) in enumerate(styled):
        values: list[Spec] = [{"x": six_digits(m.x), "y": six_digits(m.y)} for m in line.marks]
        mark = {"type": "line", "strokeWidth": 2 if place < _MAX_NAMED_LINES else 0.6,
                "strokeDash": style.dash, "interpolate": "linear"}  # fmt: skip
        encoding = {"x": {"field": "x", **x}, "y": {"field": "y", **y}}
        layers.append(_layer(style, mark, values, encoding))
    return layers


def _shape_layers(named: _Styled, x: Spec, y: Spec) -> list[Spec]:
    layers: list[Spec] = []
    told = {"description": {"field": "description"}}
    for line, style in named:
        values: list[Spec] = [
            {"x": six_digits(mark.x), "y": six_digits(mark.y), "description": mark.description}
            for mark in line.marks
            if mark.description
        ]
        mark = {"type": "point", "filled": True, "size": 46, "shape": style.shape, "opacity": 1,
                "aria": True}  # fmt: skip
        encoding = {"x": {"field": "x", **x}, "y": {"field": "y", **y}, **told}
        layers.append(_layer(style, mark, values, encoding))
    return layers


def _interval_layers(named: _Styled, x: Spec, y: Spec) -> list[Spec]:
    layers: list[Spec] = []
    for line, style in named:
        values: list[Spec] = [
            {"x": six_digits(mark.x), "low": six_digits(mark.low), "high": six_digits(mark.high)}
            for mark in line.marks
            if mark.low is not None and mark.high is not None
        ]
        if values:
            mark = {"type": "rule", "strokeWidth": 1.2, "clip": True}
            ends = {"y": {"field": "low", **y}, "y2": {"field": "high"}}
            layers.append(_layer(style, mark, values, {"x": {"field": "x", **x}, **ends}))
    return layers


def _labels(named: _Styled, area: PlotArea, height: int, ends: Sequence[float]) -> list[Spec]:
    places = separate([height * (1 - end) for end in ends], _LABEL_GAP, 0, height)
    return [
        layer
        for (line, style), at in zip(named, places, strict=True)
        for layer in _name_layers(line, style, area.width + 10.0, at, area.right - 10)
    ]


def _legend_layers(named: _Styled, area: PlotArea, rows: int) -> list[Spec]:
    layers: list[Spec] = []
    column = (area.width + area.left) / 2
    for index, (line, style) in enumerate(named):
        across = (index % 2) * column - area.left + 8
        down = (index // 2 - rows) * _LEGEND_LINE + 1
        layers += _name_layers(line, style, across, down, column - 7)
    return layers


def _name_layers(
    line: ChartLine, style: LineStyle, across: float, down: float, room: float
) -> list[Spec]:
    rule = {"type": "rule", "strokeWidth": 2, "strokeDash": style.dash}
    point = {"type": "point", "filled": True, "size": 40, "shape": style.shape, "opacity": 1}
    ends = {"x": {"value": across}, "x2": {"value": across + _SAMPLE}, "y": {"value": down}}
    middle = {"x": {"value": across + _SAMPLE / 2}, "y": {"value": down}}
    layers = [_layer(style, rule, [{}], ends), _layer(style, point, [{}], middle)]
    before = _SAMPLE + _SAMPLE_GAP
    words = shorten(line.label, room - before)
    return [*layers, text_layer({"x": across + before, "y": down}, words, style.role)]
