"""The percentile of a search's objective over the offered rate: a line for each client."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from cachemark.analysis.number_format import number, time
from cachemark.report.document import plain_table
from cachemark.report.model import RatePoint, Section
from cachemark.report.plots.line_chart import (
    ChartLine,
    ChartPoint,
    line_chart,
    rate_axis,
    unnamed_note,
)
from cachemark.report.plots.plot import Plot, slug


def searched_percentiles(section: Section, width: int) -> list[Plot]:
    """The plot of a search's steps; empty if no client was judged at two rates."""
    points = section.rate_points
    names = list(dict.fromkeys(point.label for point in points))
    lines = [_line(name, points, section.unit) for name in names]
    shown = [line for line in lines if len(line.marks) > 1]
    if not shown:
        return []
    return [
        Plot(
            name=slug("search", section.unit),
            title=f"{section.unit} over the offered rate",
            caption="Each step of the searches that says something about the server; the median "
            f"where a rate was played again.{unnamed_note(len(shown))}",
            alt=f"Line chart of {section.unit} of the response time over the offered rate: "
            + "; ".join(
                f"{line.label} from {time(line.marks[0].y)} at {number(line.marks[0].x)}/s to "
                f"{time(line.marks[-1].y)} at {number(line.marks[-1].x)}/s"
                for line in shown
            )
            + ".",
            spec=line_chart(
                shown,
                width,
                240,
                x=rate_axis("operations per second, as offered", width),
                y_title=f"{section.unit} of the response time",
            ),
            table=plain_table(
                columns=["client", "rate", section.unit],
                rows=[
                    [line.label, number(mark.x), time(mark.y)]
                    for line in shown
                    for mark in line.marks
                ],
            ),
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
