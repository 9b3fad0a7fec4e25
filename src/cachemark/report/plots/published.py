"""Published figures beside the measured ones: one small chart for each measure of a section."""

from __future__ import annotations

from cachemark.report.format import number
from cachemark.report.plots.bars import BarItem, bars
from cachemark.report.plots.frame import SI_LABEL
from cachemark.report.plots.palette import Role
from cachemark.report.plots.value import Plot, slug
from cachemark.report.tables import Table
from cachemark.report.value import Bar, Section

_KEY: tuple[tuple[Role, str], ...] = (("yardstick", "published"), ("first", "measured here"))


def published(section: Section, width: int) -> list[Plot]:
    """The section's plots; none where it has no figures to plot."""
    measures = list(dict.fromkeys(bar.measure for bar in section.bars))
    return [_plot(section, measure, width) for measure in measures]


def _plot(section: Section, measure: str, width: int) -> Plot:
    of_measure = [bar for bar in section.bars if bar.measure == measure]
    items = [
        BarItem(
            who=_who(bar),
            role="yardstick" if bar.published else "first",
            value=bar.value,
            figure=number(bar.value),
            about=f"{_who(bar)}: {number(bar.value)} {section.unit}",
        )
        for bar in of_measure
    ]
    told = "; ".join(f"{item.who} {item.figure}" for item in items)
    return Plot(
        name=slug("published", section.title, measure),
        title=measure,
        caption="",
        alt=f"Bar chart of {section.unit}, {measure}: {told}.",
        spec=bars(items, width, axis=section.unit, labels=SI_LABEL, key=_KEY),
        place=section.title,
        table=Table(
            columns=["whose", section.unit], rows=[[item.who, item.figure] for item in items]
        ),
    )


def _who(bar: Bar) -> str:
    return f"published: {bar.who}" if bar.published else bar.who
