"""The highest rate that meets an objective over the number of connections."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.number_format import number
from cachemark.report.document import plain_table
from cachemark.report.model import CapacityPoint, Section
from cachemark.report.plots.layout import SI_LABEL
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, line_chart, unnamed_note
from cachemark.report.plots.plot import Plot, slug


def capacity(section: Section, width: int) -> list[Plot]:
    """The plot of a capacity plan; empty if nothing has a rate at two numbers of connections."""
    lines = [line for line in _lines(section.capacity_points) if len(line.marks) > 1]
    if not lines:
        return []
    return [
        Plot(
            name=slug("capacity", section.unit),
            title=f"Highest rate with {section.unit} over the connections",
            caption="What the searches found for each number of connections."
            f"{unnamed_note(len(lines))}",
            alt=f"Line chart of the highest rate with {section.unit} over the connections: "
            + "; ".join(
                f"{line.label} from {number(line.marks[0].y)}/s at {line.marks[0].x:,.0f} to "
                f"{number(line.marks[-1].y)}/s at {line.marks[-1].x:,.0f}"
                for line in lines
            )
            + ".",
            spec=line_chart(
                lines,
                width,
                240,
                x={
                    "type": "quantitative",
                    "scale": {"zero": True, "nice": True},
                    "axis": {"title": "connections", "tickCount": max(3, width // 110)},
                },
                y_title="operations per second",
                y_labels=SI_LABEL,
            ),
            table=plain_table(
                columns=["what", "connections", "highest rate"],
                rows=[
                    [line.label, f"{mark.x:,.0f}", number(mark.y)]
                    for line in lines
                    for mark in line.marks
                ],
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
