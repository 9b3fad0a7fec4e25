"""Plots of searches: a percentile over the offered rate, and rates over the connections."""

from collections.abc import Sequence
from statistics import median

from cachemark.analysis.number_format import number, time
from cachemark.report.document import Plot
from cachemark.report.model import CapacityPoint, RatePoint, Section
from cachemark.report.plots.layout import SI_LABEL
from cachemark.report.plots.line_chart import (
    ChartLine,
    ChartPoint,
    from_to,
    line_plot,
    points_table,
    rate_axis,
)
from cachemark.report.plots.plot import slug


def searched_percentiles(section: Section, width: int) -> list[Plot]:
    """The plot of a search's steps; empty if no client was judged at two rates."""
    points = section.rate_points
    names = list(dict.fromkeys(point.label for point in points))
    lines = [_line(name, points, section.unit) for name in names]
    shown = [line for line in lines if len(line.marks) > 1]
    if not shown:
        return []
    return [
        line_plot(
            shown,
            width,
            name=slug("search", section.unit),
            title=f"{section.unit} over the offered rate",
            caption="Each step of the searches that says something about the server; the median "
            "where a rate was played again.",
            about=f"{section.unit} of the response time over the offered rate",
            told=from_to(lambda mark: f"{time(mark.y)} at {number(mark.x)}/s"),
            x=rate_axis("operations per second, as offered", width),
            y_title=f"{section.unit} of the response time",
            table=points_table(["client", "rate", section.unit], shown, number, time),
        )
    ]


def _line(name: str, points: Sequence[RatePoint], percentile: str) -> ChartLine:
    by_rate: dict[float, list[int]] = {}
    for point in points:
        if point.label == name:
            by_rate.setdefault(point.rate, []).append(point.percentile_ns)
    return ChartLine(
        label=name,
        marks=[
            ChartPoint(
                x=rate,
                y=median(times),
                description=f"{name} at {number(rate)}/s: {percentile} {time(median(times))}",
            )
            for rate, times in sorted(by_rate.items())
        ],
        series=next((point.series for point in points if point.label == name), None),
    )


def capacity(section: Section, width: int) -> list[Plot]:
    """The plot of a capacity plan; empty if nothing has a rate at two numbers of connections."""
    lines = [line for line in _lines(section.capacity_points) if len(line.marks) > 1]
    if not lines:
        return []
    return [
        line_plot(
            lines,
            width,
            name=slug("capacity", section.unit),
            title=f"Highest rate with {section.unit} over the connections",
            caption="The answer of the searches for each number of connections.",
            about=f"the highest rate with {section.unit} over the connections",
            told=from_to(lambda mark: f"{number(mark.y)}/s at {mark.x:,.0f}"),
            x={
                "type": "quantitative",
                "scale": {"zero": True, "nice": True},
                "axis": {"title": "connections", "tickCount": max(3, width // 110)},
            },
            y_title="operations per second",
            y_labels=SI_LABEL,
            table=points_table(
                ["what", "connections", "highest rate"], lines, "{:,.0f}".format, number
            ),
        )
    ]


def _lines(points: Sequence[CapacityPoint]) -> list[ChartLine]:
    return [
        ChartLine(
            label=label,
            marks=[
                ChartPoint(
                    x=point.connections,
                    y=point.rate,
                    description=f"{label}: {number(point.rate)}/s at {point.connections:,}",
                )
                for point in points
                if point.label == label
            ],
            series=next(point.series for point in points if point.label == label),
        )
        for label in dict.fromkeys(point.label for point in points)
    ]
