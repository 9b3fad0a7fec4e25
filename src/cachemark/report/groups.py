"""The groups of a report: the clients of one server, or the servers of the only client, ranked."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import number, time
from cachemark.analysis.rounds.answers import Answers, Place, Ranking
from cachemark.analysis.rounds.texts import no_first_text, set_leaders
from cachemark.analysis.statistics import CellSummary, KindSummary
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment
from cachemark.model.plan import NO_SERVER
from cachemark.report.model import ClientRow, Group, GroupKind, Metric, ranked_figure
from cachemark.report.plots.palette import SERIES
from cachemark.report.rounds import ROUNDING, answer_of, place_order

_Members = list[CellSummary]


def make_groups(
    summaries: Sequence[CellSummary], answers: Answers, experiment: Experiment
) -> list[Group]:
    """The groups in the order of the experiment; in-process caches come last.

    Servers are compared where the experiment ranks them, or only one client meets several.
    """
    tables: dict[tuple[str, str], _Members] = {}
    for summary in summaries:
        cell = summary.cell
        if was_played(summary) and not parse_client_name(cell.client).is_null:
            tables.setdefault((cell.workload, cell.load), []).append(summary)
    return [
        group
        for key in sorted(tables, key=lambda key: _rank(key, experiment))
        for group in _groups_of(tables[key], answers, experiment)
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


def _groups_of(table: _Members, answers: Answers, experiment: Experiment) -> list[Group]:
    networked = [member for member in table if member.cell.server != NO_SERVER]
    clients = _in_order([member.cell.client for member in networked], experiment.clients)
    several = len({member.cell.server for member in networked}) > 1
    if several and (experiment.rank == "servers" or len(clients) == 1):
        rest = [member for member in table if member.cell.server == NO_SERVER]
        of_client = [[one for one in networked if one.cell.client == name] for name in clients]
        servers = [_group("servers", own, answers, experiment) for own in of_client]
        return [*servers, *([_group("clients", rest, answers, experiment)] if rest else [])]
    names = _in_order([member.cell.server for member in table], experiment.servers)
    of_server = [[one for one in table if one.cell.server == name] for name in names]
    return [_group("clients", own, answers, experiment) for own in of_server]


def _in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Each name once, in the order of the experiment; other names come last."""
    order = {name: number for number, name in enumerate(known)}
    return sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(order)))


def _group(kind: GroupKind, members: _Members, answers: Answers, experiment: Experiment) -> Group:
    common = members[0].cell
    of_clients = kind == "clients"
    closed = any(
        load.name == common.load and load.schedule == "closed" for load in experiment.loads
    )
    metric: Metric = "rate" if closed else "p99"
    series = series_of(kind, experiment)
    rows = [_row(member, kind, members, series) for member in members]
    # Cells without a figure come last.
    rows.sort(key=lambda row: ranked_figure(row.summary, metric) is None)
    versions = (member.server_version for member in members if member.server_version)
    plain = Group(
        kind=kind,
        server=common.server if of_clients else "",
        client="" if of_clients else common.client,
        server_version=next(versions, "") if of_clients else "",
        workload=common.workload,
        load=common.load,
        metric=metric,
        rows=rows,
        lead=None,
        coloured=len(series) <= len(SERIES),
    )
    answer = answer_of(plain, answers)
    ranking = answer.ranking(answer.primary) if answer else None
    if answer is None or ranking is None or not ranking.places:
        return _alone(plain)
    places = {place.name: place for place in (*ranking.places, *ranking.beside)}
    reason = no_first_text(ranking, answer.question, answers.rule) if ranking.no_first else ""
    ranked = [_ranked(row, places.get(row.name), ranking, metric) for row in rows]
    return msgspec.structs.replace(
        plain,
        rows=sorted(ranked, key=lambda row: place_order(places.get(row.name), ranking)),
        lead=ranking.lead,
        no_first=reason,
        set_leaders=set_leaders(ranking, answer.question) if reason else [],
        itself=ranking.twice,
        itself_bound=ranking.bound,
    )


def _alone(group: Group) -> Group:
    """A group whose rows are compared with nothing; the only one with a figure is its fastest."""
    ranked = _choices(group)
    rows = [
        msgspec.structs.replace(row, fastest=row.name == ranked[0].name) if ranked else row
        for row in group.rows
    ]
    return msgspec.structs.replace(group, rows=rows)


def _row(
    member: CellSummary, kind: GroupKind, members: _Members, series: Mapping[str, int]
) -> ClientRow:
    name = member.cell.client if kind == "clients" else member.cell.server
    libraries = any(not parse_client_name(each.cell.client).is_native for each in members)
    return ClientRow(
        name=name,
        series=series.get(name),
        yardstick=kind == "clients" and libraries and parse_client_name(name).is_native,
        summary=member,
        comparison=None,
        fastest=False,
    )


def _ranked(row: ClientRow, place: Place | None, ranking: Ranking, metric: Metric) -> ClientRow:
    """A row with its comparison with the first, at the level that all cells have in common."""
    if place is None:
        return row
    named = ranking.no_first in ("", "later")
    return msgspec.structs.replace(
        row,
        summary=_adjusted(row.summary, place.value / place.own, metric),
        comparison=place.to_winner if place.to_winner and place.to_winner.ratio else None,
        fastest=place.cell == ranking.places[0].cell and named,
    )


def _adjusted(summary: CellSummary, factor: float, metric: Metric) -> CellSummary:
    """The figure that decides, at the level that all cells have in common.

    Cells that played in different sittings met the machine at different speeds.
    """
    total = summary.total
    if total is None or abs(factor - 1) < ROUNDING:
        return summary
    if metric == "rate":
        return _with_rates(summary, total, factor)
    if total.response is not None and (p99 := total.response.intervals.get(99.0)) is not None:
        at_level = p99.times(factor)
        times = msgspec.structs.replace(
            total.response,
            percentiles={**total.response.percentiles, 99.0: round(at_level.value)},
            intervals={**total.response.intervals, 99.0: at_level},
        )
        total = msgspec.structs.replace(total, response=times)
    return msgspec.structs.replace(summary, total=total)


def _with_rates(summary: CellSummary, total: KindSummary, factor: float) -> CellSummary:
    """All rates of a cell times a factor: the kinds' rates are parts of the total."""

    def scaled(of: KindSummary) -> KindSummary:
        return msgspec.structs.replace(of, rate=of.rate.times(factor))

    return msgspec.structs.replace(
        summary,
        total=scaled(total),
        kinds=[scaled(kind) for kind in summary.kinds],
        groups=scaled(summary.groups) if summary.groups else None,
    )


def series_of(kind: GroupKind, experiment: Experiment) -> dict[str, int]:
    """The number of each client's (or server's) style in the plots: its place in the experiment."""
    clients = [*experiment.clients, *experiment.in_process]
    named = clients if kind == "clients" else experiment.servers
    # The yardstick is grey, so it needs no colour of its own.
    coloured = [each for each in named if not _takes_no_colour(each)]
    return {name: number_ for number_, name in enumerate(coloured)}


def _takes_no_colour(client: str) -> bool:
    name = parse_client_name(client)
    return name.is_native or name.is_null


def _choices(group: Group) -> list[ClientRow]:
    """Rows that can be the first; beside libraries, the native client is only a yardstick."""
    measured = [row for row in group.rows if ranked_figure(row.summary, group.metric) is not None]
    return [row for row in measured if not row.yardstick] or measured


def alone_text(group: Group) -> str:
    """A sentence about a group without a question: one row has a figure, or none has."""
    against = "against " if group.kind == "clients" else ""
    place = f"{group.workload}, {group.load}, {against}{group.common}"
    ranked = _choices(group)
    if not ranked:
        return f"{place}: no {group.heading} has a valid figure."
    of = ranked_figure(ranked[0].summary, group.metric)
    value = of.value if of else 0.0
    figure = f"{number(value)} ops/s" if group.metric == "rate" else f"a p99 of {time(value)}"
    # The native client may have one too: it is no rival of a library.
    only = "is compared" if any(row.yardstick for row in group.rows) else "has a valid figure"
    return f"{place}: only {ranked[0].name} {only}, with {figure}."
