"""The ranking of a group: a bar for each client, with its interval and its trials."""

from collections.abc import Sequence

from cachemark.analysis.number_format import (
    bounds_name,
    number,
    rate_with_error,
    time,
    time_with_error,
)
from cachemark.analysis.statistics import Interval
from cachemark.report.document import Plot, Table, plain_table
from cachemark.report.model import ClientRow, Group, Metric, TrialRow, ranked_figure
from cachemark.report.plots.bar_chart import BarItem, bar_chart, clipped_note
from cachemark.report.plots.layout import LINES_ACROSS, SI_LABEL, TIME_LABEL
from cachemark.report.plots.palette import ColourRole, identity
from cachemark.report.plots.plot import slug
from cachemark.report.tables import group_title


def ranking(group: Group, trials: Sequence[TrialRow], width: int) -> Plot:
    """Operations per second in a closed loop, the p99 in an open one."""
    dots = _rates(group, trials) if group.metric == "rate" else {}
    items = [_item(group, row, dots.get(row.name, [])) for row in group.rows]
    closed = group.metric == "rate"
    return Plot(
        name=slug("ranking", group.workload, group.load, group.common),
        title="Throughput" if closed else "Response time, 99th percentile",
        caption=_caption(group, dots, clipped_note(items)),
        alt=_alt(group, items),
        spec=bar_chart(
            items,
            width,
            axis="operations per second" if closed else "p99 of the response time (less is faster)",
            labels=SI_LABEL if closed else TIME_LABEL,
        ),
        subtitle=group_title(group),
        table=_table(group),
    )


def formatted(of: Interval | None, metric: Metric) -> str:
    """A figure with its interval as a percentage."""
    if of is None:
        return "no figure"
    return rate_with_error(of) if metric == "rate" else time_with_error(of)


def interval_text(of: Interval, metric: Metric) -> str:
    """The interval or the range in words; empty if there is none."""
    if of.low is None or of.high is None:
        return ""
    write = number if metric == "rate" else time
    return f"{bounds_name(of)} {write(of.low)} to {write(of.high)}"


def leader(group: Group) -> str:
    """The client that the report names as first: the fastest library, or else the native client.

    Empty if none is.
    """
    if is_unnamed(group):
        return ""
    if group.lead is not None:
        return group.name_of(group.lead.first)
    measured = [row for row in group.rows if ranked_figure(row.summary, group.metric) is not None]
    libraries = [row for row in measured if not row.yardstick]
    return next((row.name for row in libraries or measured), "")


def is_unnamed(group: Group) -> bool:
    """Whether no first is named though several have a figure.

    A single block has one trial of each, so their ratio has no interval.
    """
    lead = group.lead.ratio if group.lead else None
    return bool(group.no_first) or (lead is not None and lead.low is None)


def is_settled(group: Group) -> bool:
    """Whether the lead of the first over the second is shown."""
    return group.lead is not None and group.lead.answer == "better"


def _item(group: Group, row: ClientRow, dots: list[float]) -> BarItem:
    client, of = row.name, ranked_figure(row.summary, group.metric)
    first = client == leader(group) and is_settled(group)
    role: ColourRole = (
        "yardstick"
        if row.yardstick
        else identity(row.series if group.coloured else None, first=first)
    )
    unit = " ops/s" if group.metric == "rate" else ""
    description = [f"{client}: {formatted(of, group.metric)}{unit if of else ''}"]
    description += [interval_text(of, group.metric)] if of and of.low is not None else []
    description.append(f"{row.summary.valid} of {row.summary.trials} trials valid")
    return BarItem(
        label=client,
        role=role,
        of=of,
        figure=formatted(of, group.metric),
        description=", ".join(description),
        dots=dots,
        hollow=row.summary.valid == 1,
    )


def _rates(group: Group, trials: Sequence[TrialRow]) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {}
    for trial in trials:
        if trial.ops_per_s and group.has(trial.cell):
            rates.setdefault(group.name_of(trial.cell), []).append(trial.ops_per_s)
    return rates


def _caption(group: Group, dots: dict[str, list[float]], arrows: str) -> str:
    parts = [f"Bars: geometric mean of the valid trials. {LINES_ACROSS}"]
    if dots:
        parts.append("Dots: the trials.")
    if any(row.yardstick for row in group.rows):
        parts.append("Grey: the yardstick, which does the same work without a library.")
    if any(row.summary.valid == 1 for row in group.rows):
        parts.append("Hollow: a single trial.")
    return " ".join([*parts, *([arrows] if arrows else [])])


def _alt(group: Group, items: list[BarItem]) -> str:
    unit = "operations per second" if group.metric == "rate" else "p99 of the response time"
    bars_text = "; ".join(f"{item.label} {item.figure}" for item in items)
    return f"Bar chart of {unit} against {group.common}: {bars_text}."


def _table(group: Group) -> Table:
    write = number if group.metric == "rate" else time
    rows: list[list[str]] = []
    for row in group.rows:
        of = ranked_figure(row.summary, group.metric)
        ends = (of.value, of.low, of.high) if of else (None, None, None)
        cells = ["–" if end is None else write(end) for end in ends]
        counted = f"{row.summary.valid}/{row.summary.trials}"
        rows.append([row.name, *cells, counted])
    unit = "ops/s" if group.metric == "rate" else "p99"
    return plain_table(columns=[group.heading, unit, "from", "to", "valid trials"], rows=rows)
