"""The groups of a report: the clients of one server, or the servers of the only client, ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from cachemark.analysis.number_format import count_of, interval, number, time
from cachemark.analysis.statistics import (
    CellSummary,
    Comparison,
    Metric,
    compare,
    compare_pair,
    ranking,
    self_comparison,
)
from cachemark.endpoints.clients import NATIVE, is_null_client
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.report.model import ClientRow, Group, Kind
from cachemark.report.plots.palette import SERIES

_Members = list[CellSummary]
# With fewer blocks in which both have a valid trial, a ratio has no interval.
LEAST_SHARED_BLOCKS = 2


def make_groups(
    summaries: Sequence[CellSummary], outcomes: Sequence[Outcome], experiment: Experiment
) -> list[Group]:
    """The groups in the order of the experiment; what runs in the process comes last.

    Servers are compared where the experiment ranks them, or only one client meets several.
    """
    tables: dict[tuple[str, str], _Members] = {}
    for summary in summaries:
        cell = summary.cell
        if was_played(summary) and not is_null_client(cell.client):
            tables.setdefault((cell.workload, cell.load), []).append(summary)
    return [
        group
        for key in sorted(tables, key=lambda key: _rank(key, experiment))
        for group in _groups_of(tables[key], outcomes, experiment)
    ]


def _rank(key: tuple[str, str], experiment: Experiment) -> tuple[int, int]:
    workload, load = key
    return (
        [each.name for each in experiment.workloads].index(workload),
        [each.name for each in experiment.loads].index(load),
    )


def was_played(summary: CellSummary) -> bool:
    """At least one trial of the cell was played, with any result."""
    return summary.total is not None or not summary.unsupported


def _groups_of(table: _Members, outcomes: Sequence[Outcome], experiment: Experiment) -> list[Group]:
    """The groups of one workload and load."""
    networked = [member for member in table if member.cell.server != NO_SERVER]
    clients = dict.fromkeys(member.cell.client for member in networked)
    several = len({member.cell.server for member in networked}) > 1
    if several and (experiment.rank == "servers" or len(clients) == 1):
        rest = [member for member in table if member.cell.server == NO_SERVER]
        of_client = [[one for one in networked if one.cell.client == name] for name in clients]
        servers = [_group("servers", own, outcomes, experiment) for own in of_client]
        return [*servers, *([_group("clients", rest, outcomes, experiment)] if rest else [])]
    by_server: dict[str, _Members] = {}
    for member in table:
        by_server.setdefault(member.cell.server, []).append(member)
    order = {server: number for number, server in enumerate(experiment.servers)}
    return [
        _group("clients", by_server[server], outcomes, experiment)
        for server in sorted(by_server, key=lambda server: order.get(server, len(order)))
    ]


def _group(
    kind: Kind, members: _Members, outcomes: Sequence[Outcome], experiment: Experiment
) -> Group:
    own = outcomes if kind == "clients" else _exchanged(outcomes)
    cells = [member.cell if kind == "clients" else _exchange(member.cell) for member in members]
    common, margin = cells[0], experiment.margin_percent
    closed = any(
        load.name == common.load and load.schedule == "closed" for load in experiment.loads
    )
    metric: Metric = "rate" if closed else "p99"
    order = ranking(own, common, metric)
    rows = [
        _row(cell.client, member, kind, members, experiment)
        for cell, member in zip(cells, members, strict=True)
    ]
    rows.sort(key=lambda row: _place(row, order, metric))
    ranked = [row.name for row in _choices(rows, metric)]
    compared = compare(own, rows[0].name, common, margin, metric) if ranked else []
    comparisons = {comparison.client: comparison for comparison in compared}
    lead = compare_pair(own, (ranked[1], ranked[0]), common, margin, metric) if ranked[1:] else None
    # A ranking over all blocks may contradict the blocks that two have in common.
    ahead = [one for one in compared if one.client in ranked and _is_ahead(one)]
    no_first = _no_first(ranked, lead, ahead)
    versions = (member.server_version for member in members if member.server_version)
    return Group(
        kind=kind,
        server=common.server if kind == "clients" else "",
        client="" if kind == "clients" else common.server,
        server_version=next(versions, "") if kind == "clients" else "",
        workload=common.workload,
        load=common.load,
        metric=metric,
        rows=[
            msgspec.structs.replace(
                row, comparison=comparisons.get(row.name), fastest=row is rows[0] and bool(ranked)
            )
            if not ahead
            else row
            for row in rows
        ],
        lead=None if no_first else lead,
        no_first=no_first,
        itself=self_comparison(outcomes, rows[0].summary.cell, margin, metric),
    )


def _is_ahead(comparison: Comparison) -> bool:
    """Whether, in the blocks of both, the client did better than the baseline."""
    value = comparison.ratio.value
    return value > 1 if comparison.metric == "rate" else value < 1


def _no_first(ranked: Sequence[str], lead: Comparison | None, ahead: Sequence[Comparison]) -> str:
    """Why nobody is named as first, in words; empty if somebody is, or there is no choice.

    `ahead`: those that the first is ahead of over all blocks, but not in the blocks of both.
    """
    if len(ranked) < 2:
        return ""
    shared = lead.pairs if lead else 0
    if shared < LEAST_SHARED_BLOCKS:
        return (
            f"{ranked[0]} and {ranked[1]} have {count_of(shared, 'block')} with a valid trial of "
            f"both, and {LEAST_SHARED_BLOCKS} are needed"
        )
    if not ahead:
        return ""
    other = ahead[0]
    return (
        f"over all blocks {ranked[0]} is ahead, but in the {count_of(other.pairs, 'block')} with a "
        f"valid trial of both, {other.client} is"
    )


def _exchanged(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes with client and server in each other's place, as statistics compare clients."""
    return [
        msgspec.structs.replace(
            outcome,
            trial=msgspec.structs.replace(outcome.trial, cell=_exchange(outcome.trial.cell)),
        )
        for outcome in outcomes
    ]


def _exchange(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, client=cell.server, server=cell.client)


def _row(
    name: str, member: CellSummary, kind: Kind, members: _Members, experiment: Experiment
) -> ClientRow:
    libraries = any(not _is_native(each.cell.client) for each in members)
    return ClientRow(
        name=name,
        series=series_of(kind, experiment).get(name),
        yardstick=kind == "clients" and libraries and _is_native(name),
        summary=member,
        comparison=None,
        fastest=False,
    )


def series_of(kind: Kind, experiment: Experiment) -> dict[str, int]:
    """The number of each client's (or server's) colour; empty if there are not enough colours."""
    clients = [*experiment.clients, *experiment.in_process]
    named = clients if kind == "clients" else experiment.servers
    # The yardstick is grey, so it needs no colour of its own.
    coloured = [each for each in named if not _is_native(each) and not is_null_client(each)]
    if len(coloured) > len(SERIES):
        return {}
    return {name: number_ for number_, name in enumerate(coloured)}


def _is_native(client: str) -> bool:
    return client.partition("?")[0] == NATIVE


def _place(row: ClientRow, order: Sequence[str], metric: Metric) -> tuple[bool, float]:
    """The place of a row in its group: those without a figure come last."""
    if _figure(row.summary, metric) is None:
        return True, 0.0
    # A figure that is not above 0 cannot be ranked on logarithms.
    return False, order.index(row.name) if row.name in order else math.inf


def _figure(summary: CellSummary, metric: Metric) -> float | None:
    total = summary.total
    if total is None:
        return None
    if metric == "rate":
        return total.rate.value
    return total.p99_ns.value if total.p99_ns else None


def _choices(rows: Sequence[ClientRow], metric: Metric) -> list[ClientRow]:
    """Those to choose from: the native client is a yardstick where libraries are compared."""
    measured = [row for row in rows if _figure(row.summary, metric) is not None]
    return [row for row in measured if not row.yardstick] or measured


def group_answer(group: Group) -> str:
    """Who is first, and how sure that is, in a sentence."""
    against = "against " if group.kind == "clients" else ""
    place = f"{group.workload}, {group.load}, {against}{group.common}"
    ranked = _choices(group.rows, group.metric)
    if not ranked:
        return f"{place}: no {group.kind[:-1]} has a valid figure."
    client = ranked[0].name
    value = _figure(ranked[0].summary, group.metric) or 0.0
    figure = f"{number(value)} ops/s" if group.metric == "rate" else f"a p99 of {time(value)}"
    if len(ranked) == 1:
        # The native client may have one too: it is no rival of a library.
        only = "is compared" if any(row.yardstick for row in group.rows) else "has a valid figure"
        return f"{place}: only {client} {only}, with {figure}."
    if group.lead is None:
        return f"{place}: nobody is named first: {group.no_first}; {client} has {figure}."
    return f"{place}: {client} is first with {figure}; {_second_place(group.lead)}."


def _second_place(comparison: Comparison) -> str:
    second = comparison.client
    measure = comparison.metric
    part = f"{second} is second, with {interval(comparison.ratio, '{:.2f}')} times its {measure}"
    if comparison.answer not in ("equivalent", "inconclusive"):
        return part
    more = ""
    if comparison.answer == "inconclusive" and comparison.needed:
        more = f"; about {comparison.needed} blocks would probably settle it"
    return f"{part} ({_MEANING[comparison.answer]}{more})"


_MEANING = {
    "equivalent": "equivalent within the margin",
    "inconclusive": "inconclusive",
}
