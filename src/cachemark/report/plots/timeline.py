"""Throughput, memory and hits during the measured window, second by second."""

from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean

from cachemark.analysis.number_format import number, size
from cachemark.report.document import Plot, Spec, Table, plain_table
from cachemark.report.model import Group, TimelinePoint, TrialRow
from cachemark.report.plots.layout import MEMORY_LABEL, SHARE_LABEL, SI_LABEL
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, from_to, line_plot
from cachemark.report.plots.plot import slug
from cachemark.report.tables import group_title

_Getter = Callable[[TimelinePoint], float | None]
_Mean = Callable[[Sequence[float]], float]
# Memory that holds still is known from the figure after the window.
_MIN_SHOWN_GROWTH = 1.1


def rate(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """Operations per second during the window; None if windows were too short."""
    if group.metric != "rate":
        return None
    return _plot(
        group,
        _lines(group, trials, lambda moment: moment.ops_per_s, number, "ops/s"),
        width,
        name="timeline",
        heading="Throughput, second by second",
        unit="operations per second",
        labels=SI_LABEL,
        write=number,
    )


def memory(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """The server's memory during the window; None if it did not grow, or is not known."""
    lines = _lines(group, trials, lambda moment: moment.server_rss_bytes, size, "resident")
    grown = [line for line in lines if line.marks[-1].y > _MIN_SHOWN_GROWTH * line.marks[0].y]
    return _plot(
        group,
        lines if grown else [],
        width,
        name="timeline-memory",
        heading="Server memory, second by second",
        unit="server's resident memory",
        labels=MEMORY_LABEL,
        write=size,
    )


def hit_ratio(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """The share of keys that the server had; None if all were there, or windows were too short."""
    lines = _lines(group, trials, lambda moment: moment.hit_ratio, _percent, "hits", mean=fmean)
    missed = any(mark.y < 1 for line in lines for mark in line.marks)
    return _plot(
        group,
        lines if missed else [],
        width,
        name="timeline-hits",
        heading="Hit ratio, second by second",
        unit="share of keys that were found",
        labels=SHARE_LABEL,
        write=_percent,
        caption="Mean of the valid trials, from the server's `get_hits` and `get_misses` about "
        "once a second.",
        shares=True,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plot(
    group: Group,
    lines: list[ChartLine],
    width: int,
    *,
    name: str,
    heading: str,
    unit: str,
    labels: str,
    write: Callable[[float], str],
    caption: str = (
        "Geometric mean of the valid trials, from samples of the workers and the kernel about once "
        "a second."
    ),
    shares: bool = False,
) -> Plot | None:
    if not lines:
        return None
    return line_plot(
        lines,
        width,
        name=slug(name, group.workload, group.load, group.common),
        title=heading,
        caption=caption,
        about=f"{unit} in the course of the window",
        told=from_to(lambda mark: write(mark.y)),
        x=_axis(max(line.marks[-1].x for line in lines)),
        y_title=unit,
        y_labels=labels,
        height=260,
        shares=shares,
        subtitle=group_title(group),
        table=_table(lines, write),
    )


def _lines(
    group: Group,
    trials: Sequence[TrialRow],
    get: _Getter,
    write: Callable[[float], str],
    unit: str,
    *,
    mean: _Mean = geometric_mean,
) -> list[ChartLine]:
    lines: list[ChartLine] = []
    for row in group.rows:
        client = row.name
        own = [t for t in trials if group.has(t.cell) and group.name_of(t.cell) == client]
        timelines = [trial.timeline for trial in own]
        marks = [
            ChartPoint(x=x, y=y, description=f"{client} at {x:.0f} s: {write(y)} {unit}")
            for x, y in _means([timeline for timeline in timelines if timeline], get, mean)
        ]
        if len(marks) > 1:
            lines.append(ChartLine(label=client, marks=marks, series=row.series))
    return lines


def _means(
    timelines: list[list[TimelinePoint]], get: _Getter, mean: _Mean
) -> list[tuple[float, float]]:
    """Second and mean, for each second of which all trials have a figure that the mean can take."""
    means: list[tuple[float, float]] = []
    for moments in zip(*timelines, strict=False):
        known = [value for moment in moments if (value := get(moment)) is not None]
        values = [value for value in known if value or mean is not geometric_mean]
        if len(values) == len(moments):
            means.append((moments[0].second, mean(values)))
    return means


def _axis(last: float) -> Spec:
    return {
        "type": "quantitative",
        "scale": {"domain": [0, last * 1.02], "nice": False},
        "axis": {"title": "seconds since the window began", "tickMinStep": 1, "tickCount": 6},
    }


def _table(lines: list[ChartLine], write: Callable[[float], str]) -> Table:
    seconds = sorted({mark.x for line in lines for mark in line.marks})
    figures = [{mark.x: write(mark.y) for mark in line.marks} for line in lines]
    rows = [
        [line.label, *[of.get(second, "–") for second in seconds]]
        for line, of in zip(lines, figures, strict=True)
    ]
    return plain_table(columns=["client", *[f"{second:.0f} s" for second in seconds]], rows=rows)
