"""Throughput, memory and hits during the measured window, second by second."""

from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean

import msgspec

from cachemark.analysis.number_format import number, size
from cachemark.report.document import Plot, Spec, Table, plain_table
from cachemark.report.model import Group, TimelinePoint, TrialRow
from cachemark.report.plots.layout import MEMORY_LABEL, SHARE_LABEL, SI_LABEL
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, from_to, line_plot
from cachemark.report.plots.plot import slug
from cachemark.report.tables import group_title

_Mean = Callable[[Sequence[float]], float]
# Memory that holds still is known from the figure after the window.
_MIN_SHOWN_GROWTH = 1.1


class _Figure(msgspec.Struct, frozen=True):
    """A figure of each second: its plot's names and labels, and its `unit` in words and short."""

    name: str
    heading: str
    unit: str
    short: str
    labels: str
    get: Callable[[TimelinePoint], float | None]
    write: Callable[[float], str]
    is_told: Callable[[list[ChartPoint]], bool] = bool
    mean: _Mean = geometric_mean
    caption: str = (
        "Geometric mean of the valid trials, from samples of the workers and the kernel about once "
        "a second."
    )


_RATE = _Figure(
    "timeline", "Throughput, second by second", "operations per second", "ops/s", SI_LABEL,
    lambda moment: moment.ops_per_s, number,
)  # fmt: skip
_MEMORY = _Figure(
    "timeline-memory", "Server memory, second by second", "server's resident memory", "resident",
    MEMORY_LABEL, lambda moment: moment.server_rss_bytes, size,
    lambda marks: marks[-1].y > _MIN_SHOWN_GROWTH * marks[0].y,
)  # fmt: skip
_HITS = _Figure(
    "timeline-hits", "Hit ratio, second by second", "share of keys that were found", "hits",
    SHARE_LABEL, lambda moment: moment.hit_ratio, lambda share: f"{100 * share:.1f} %",
    lambda marks: any(mark.y < 1 for mark in marks), fmean,
    "Mean of the valid trials, from the server's `get_hits` and `get_misses` about once a second.",
)  # fmt: skip


def rate(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """Operations per second during the window; None if windows were too short."""
    return _plot(_RATE, group, trials, width) if group.metric == "rate" else None


def memory(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """The server's memory during the window; None if it did not grow, or is not known."""
    return _plot(_MEMORY, group, trials, width)


def hit_ratio(group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    """The share of keys that the server had; None if all were there, or windows were too short."""
    return _plot(_HITS, group, trials, width)


def _plot(of: _Figure, group: Group, trials: Sequence[TrialRow], width: int) -> Plot | None:
    lines = _lines(of, group, trials)
    if not any(of.is_told(line.marks) for line in lines):
        return None
    return line_plot(
        lines,
        width,
        name=slug(of.name, group.workload, group.load, group.common),
        title=of.heading,
        caption=of.caption,
        about=f"{of.unit} in the course of the window",
        told=from_to(lambda mark: of.write(mark.y)),
        x=_axis(max(line.marks[-1].x for line in lines)),
        y_title=of.unit,
        y_labels=of.labels,
        height=260,
        shares=of is _HITS,
        subtitle=group_title(group),
        table=_table(lines, of.write),
    )


def _lines(of: _Figure, group: Group, trials: Sequence[TrialRow]) -> list[ChartLine]:
    lines: list[ChartLine] = []
    for row in group.rows:
        client = row.name
        own = [t for t in trials if group.has(t.cell) and group.name_of(t.cell) == client]
        timelines = [trial.timeline for trial in own if trial.timeline]
        marks = [
            ChartPoint(x=x, y=y, description=f"{client} at {x:.0f} s: {of.write(y)} {of.short}")
            for x, y in _means(timelines, of)
        ]
        if len(marks) > 1:
            lines.append(ChartLine(label=client, marks=marks, series=row.series))
    return lines


def _means(timelines: list[list[TimelinePoint]], of: _Figure) -> list[tuple[float, float]]:
    """Second and mean, for each second of which all trials have a figure that the mean can take."""
    means: list[tuple[float, float]] = []
    for moments in zip(*timelines, strict=False):
        known = [value for moment in moments if (value := of.get(moment)) is not None]
        values = [value for value in known if value or of.mean is not geometric_mean]
        if len(values) == len(moments):
            means.append((moments[0].second, of.mean(values)))
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
