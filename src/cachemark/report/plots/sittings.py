"""Plots of a run that was played in turns: round by round, as intervals narrowed, carry-over."""

from statistics import quantiles

from cachemark.analysis.number_format import interval
from cachemark.analysis.rounds.answers import Answers
from cachemark.analysis.rounds.carry_over import CarryOver, CarryOverTable
from cachemark.analysis.rounds.narrowing import Narrowing, Step
from cachemark.analysis.rounds.round_timeline import RoundTimeline
from cachemark.analysis.statistics import Interval
from cachemark.report.document import Plot, plain_table
from cachemark.report.model import Group
from cachemark.report.plots.bar_chart import BarItem, bar_chart
from cachemark.report.plots.layout import TIMES_LABEL
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, count_axis, line_plot
from cachemark.report.plots.plot import slug
from cachemark.report.round_sections import CARRY_OVER_TITLE
from cachemark.report.rounds import answer_of
from cachemark.report.tables import group_title

_RATIO_LABEL = "format(datum.value, '~r')"


def narrowing(group: Group, answers: Answers | None, width: int) -> Plot | None:
    """Each client's ratio to the first one after each sitting; None if no answer has them."""
    answer = answer_of(group, answers) if answers else None
    if answer is None or not answer.narrowing:
        return None
    series = _series(group)
    lines = [
        ChartLine(
            label=one.name,
            marks=[_point(one.name, step) for step in one.steps],
            series=series.get(one.name),
        )
        for one in answer.narrowing
    ]
    counts = sorted({step.sittings for one in answer.narrowing for step in one.steps})
    ends = {one.name: _words(one.steps[-1].ratio) for one in answer.narrowing}
    return line_plot(
        lines,
        width,
        name=slug("narrowing", group.workload, group.load, group.common),
        title="The answer as it narrowed, sitting by sitting",
        caption="Sittings are the sample: each one more makes the intervals narrower.",
        about="ratios with their intervals after each sitting; at the end",
        told=lambda line: f"{line.label} {ends[line.label]}",
        x=count_axis("sittings", counts),
        y_title="relative to the first",
        y_labels=_RATIO_LABEL,
        height=260,
        subtitle=group_title(group),
        table=plain_table(
            columns=[group.heading, *[f"after {count}" for count in counts]],
            rows=[[one.name, *_cells(one, counts)] for one in answer.narrowing],
        ),
    )


def round_by_round(group: Group, answers: Answers | None, width: int) -> Plot | None:
    """Each client's ratio to the first one in the course of the run; None without rounds."""
    answer = answer_of(group, answers) if answers else None
    if answers is None or answer is None or not answer.timeline:
        return None
    timelines, series = answer.timeline, _series(group)
    caption = (
        "A level line is a difference that does not change. The machine’s changes of speed are "
        f"not in it: each point is the median of at most {max(one.rounds for one in timelines)} "
        "rounds, in which the two played one after the other."
    )
    ends = {one.name: "{:.3f} and {:.3f}".format(*_quartiles(one)) for one in timelines}
    return line_plot(
        [
            ChartLine(
                label=one.name,
                marks=[ChartPoint(x=point.place, y=point.ratio) for point in one.points],
                series=series.get(one.name),
            )
            for one in timelines
        ],
        width,
        name=slug("rounds", group.workload, group.load, group.common),
        title="The ratios, round by round",
        caption=caption,
        about="ratios in the course of the run; half of the points lie between",
        told=lambda line: f"{line.label} {ends[line.label]}",
        x=count_axis("sittings played", range(answers.sittings + 1), beyond=0),
        y_title="relative to the first",
        y_labels=_RATIO_LABEL,
        height=260,
        subtitle=group_title(group),
        table=plain_table(
            columns=[group.heading, "points", "half of the points lie between"],
            rows=[[one.name, str(len(one.points)), ends[one.name]] for one in timelines],
        ),
    )


def _series(group: Group) -> dict[str, int | None]:
    return {row.name: row.series for row in group.rows}


def _quartiles(timeline: RoundTimeline) -> tuple[float, float]:
    first, _, third = quantiles([point.ratio for point in timeline.points], n=4)
    return first, third


def _point(name: str, step: Step) -> ChartPoint:
    ratio = step.ratio
    return ChartPoint(
        x=step.sittings,
        y=ratio.value,
        low=ratio.low,
        high=ratio.high,
        description=f"{name}, after {step.sittings} sittings: {_words(ratio)}",
    )


def _cells(one: Narrowing, counts: list[int]) -> list[str]:
    known = {step.sittings: _words(step.ratio) for step in one.steps}
    return [known.get(count, "–") for count in counts]


def _words(ratio: Interval) -> str:
    return interval(ratio, "{:.3f}")


def carry_over(answers: Answers | None, width: int) -> list[Plot]:
    """For each set of arms, the rate of the slices after each arm, relative to the others."""
    return [_carry_over(table, width) for table in (answers.carry_over if answers else [])]


def _carry_over(table: CarryOverTable, width: int) -> Plot:
    items = [_item(arm) for arm in table.arms]
    first = table.arms[0].cell
    return Plot(
        name=slug("carry-over", first.workload, first.load, first.server),
        title=CARRY_OVER_TITLE,
        caption="At 1 ×, the next slice is as fast as those after the other clients.",
        alt="Bar chart of the rate of the slices after each client, relative to those after the "
        "others: " + "; ".join(item.description for item in items) + ".",
        spec=bar_chart(items, width, axis="rate of the next slice", labels=TIMES_LABEL),
        subtitle=f"{first.workload} · {first.load}",
        table=plain_table(
            columns=["client", "rate of the next slice"],
            rows=[[item.label, item.figure] for item in items],
        ),
    )


def _item(arm: CarryOver) -> BarItem:
    label = f"{arm.cell.client} · {arm.cell.server}"
    ratio = arm.successor
    return BarItem(
        label=label,
        role="first",
        of=ratio,
        figure=_words(ratio),
        description=f"{label}: {_words(ratio)}",
    )
