"""Line charts: one line for each client, told by colour, dash and shape; the last ones are grey."""

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
from cachemark.report.plots.palette import GREY, ColourRole, LineStyle, light, line_style

MAX_NAMED_LINES = 12
_LABEL_GAP = 14.0
_LEGEND_LINE = 18
# An interval is drawn no further than this beyond the marks: else it would leave nothing of them.
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
    unnamed = f" Only the first {MAX_NAMED_LINES} are named."
    return Plot(
        name=name,
        title=title,
        caption=caption + (unnamed if len(lines) > MAX_NAMED_LINES else ""),
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
    """Figures over `x` (a channel without its field); twelve lines are named.

    The axis is logarithmic; that of `shares` is linear, from 0 to 1.
    """
    named, rest = lines[:MAX_NAMED_LINES], lines[MAX_NAMED_LINES:]
    low, high, ticks = (0.0, 1.0, _SHARE_TICKS) if shares else log_axis(*_bounds(lines))
    area = _plot_area(named, width)
    y = {
        "type": "quantitative",
        "scale": {"type": "linear" if shares else "log", "domain": [low, high], "nice": False},
        "axis": {"title": y_title, "values": ticks, "labelExpr": y_labels, "titleAnchor": "end"},
    }
    layers = [
        *_line_layers(rest, [GREY] * len(rest), x, y, width=1),
        *_line_layers(named, [(of.role, of.dash) for of in _styles(named)], x, y, width=2),
        *_interval_layers(named, x, y),
        *_shape_layers(named, x, y),
    ]
    if area.right > 40:
        ends = [_place(line.marks[-1].y, low, high, shares=shares) for line in named]
        layers += _labels(named, area, height, ends)
        return specification(area, height, layers, top=10)
    rows = math.ceil(len(named) / 2)
    layers += _legend_layers(named, area, rows)
    return specification(area, height, layers, top=14 + rows * _LEGEND_LINE)


def _styles(named: Sequence[ChartLine]) -> list[LineStyle]:
    """The style of each line; no two lines have the same."""
    if all(line.series is None for line in named):
        return [line_style(place) for place in range(len(named))]
    grey = sorted(line.label for line in named if line.series is None)
    return [
        line_style(grey.index(line.label), grey=True)
        if line.series is None
        else line_style(line.series)
        for line in named
    ]


def _plot_area(named: Sequence[ChartLine], width: int) -> PlotArea:
    if is_wide(width):
        right = label_width([line.label for line in named])
        return PlotArea(left=62, width=width - 62 - right, right=right)
    return PlotArea(left=62, width=width - 62 - 24, right=24)


def _bounds(lines: Sequence[ChartLine]) -> tuple[float, float]:
    marks = [mark for line in lines for mark in line.marks]
    least = min((mark.y for mark in marks), default=1.0)
    most = max((mark.y for mark in marks), default=10.0)
    low = min([least, *(mark.low for mark in marks if mark.low is not None)])
    high = max([most, *(mark.high for mark in marks if mark.high is not None)])
    return max(low, least / _MAX_AXIS_FACTOR), min(high, most * _MAX_AXIS_FACTOR)


def _line_layers(
    lines: Sequence[ChartLine],
    styles: Sequence[tuple[ColourRole, list[int]]],
    x: Spec,
    y: Spec,
    width: int,
) -> list[Spec]:
    return [
        {
            "data": {"values": [{"x": six_digits(m.x), "y": six_digits(m.y)} for m in line.marks]},
            "mark": {
                "type": "line",
                "color": light(role),
                "strokeWidth": width,
                "strokeDash": dash,
                "interpolate": "linear",
                "aria": False,
            },
            "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}},
        }
        for line, (role, dash) in zip(lines, styles, strict=False)
    ]


def _shape_layers(named: Sequence[ChartLine], x: Spec, y: Spec) -> list[Spec]:
    layers: list[Spec] = []
    for line, style in zip(named, _styles(named), strict=True):
        values = [
            {"x": six_digits(mark.x), "y": six_digits(mark.y), "description": mark.description}
            for mark in line.marks
            if mark.description
        ]
        mark = {"type": "point", "filled": True, "size": 46, "shape": style.shape,
                "color": light(style.role), "opacity": 1}  # fmt: skip
        encoding = {
            "x": {"field": "x", **x},
            "y": {"field": "y", **y},
            "description": {"field": "description"},
        }
        layers.append({"data": {"values": values}, "mark": mark, "encoding": encoding})
    return layers


def _interval_layers(named: Sequence[ChartLine], x: Spec, y: Spec) -> list[Spec]:
    layers: list[Spec] = []
    for line, style in zip(named, _styles(named), strict=True):
        values = [
            {"x": six_digits(mark.x), "low": six_digits(mark.low), "high": six_digits(mark.high)}
            for mark in line.marks
            if mark.low is not None and mark.high is not None
        ]
        if values:
            mark = {"type": "rule", "color": light(style.role), "strokeWidth": 1.2, "clip": True,
                    "aria": False}  # fmt: skip
            encoding = {
                "x": {"field": "x", **x},
                "y": {"field": "low", **y},
                "y2": {"field": "high"},
            }
            layers.append({"data": {"values": values}, "mark": mark, "encoding": encoding})
    return layers


def _place(y: float, low: float, high: float, *, shares: bool) -> float:
    """How far up a figure is, as a part of the axis."""
    return (y - low) / (high - low) if shares else math.log(y / low) / math.log(high / low)


def _labels(
    named: Sequence[ChartLine], area: PlotArea, height: int, ends: Sequence[float]
) -> list[Spec]:
    """The name of each line at its end, moved if ends are too close."""
    places = separate([height * (1 - end) for end in ends], _LABEL_GAP, 0, height)
    return [
        text_layer(
            {"x": area.width + 10.0, "y": at}, shorten(line.label, area.right - 10), style.role
        )
        for line, style, at in zip(named, _styles(named), places, strict=True)
    ]


def _legend_layers(named: Sequence[ChartLine], area: PlotArea, rows: int) -> list[Spec]:
    """A legend above the lines, in two columns."""
    layers: list[Spec] = []
    column = (area.width + area.left) / 2
    for index, (line, style) in enumerate(zip(named, _styles(named), strict=True)):
        across = (index % 2) * column - area.left + 8
        at = {"y": {"value": (index // 2 - rows) * _LEGEND_LINE + 1}}
        rule = {
            "type": "rule",
            "color": light(style.role),
            "strokeWidth": 2,
            "strokeDash": style.dash,
        }
        ends = {"x": {"value": across}, "x2": {"value": across + 24}}
        point = {"type": "point", "filled": True, "size": 40, "shape": style.shape,
                 "color": light(style.role)}  # fmt: skip
        middle = {"x": {"value": across + 12}}
        for mark, where in ((rule, ends), (point, middle)):
            layers.append(
                {
                    "data": {"values": [{}]},
                    "mark": {**mark, "aria": False, "opacity": 1},
                    "encoding": {**where, **at},
                }
            )
        words = {"x": across + 31, "y": float(at["y"]["value"])}
        layers.append(text_layer(words, shorten(line.label, column - 38), style.role, fontSize=11))
    return layers
