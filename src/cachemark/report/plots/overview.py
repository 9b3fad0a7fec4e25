"""Small multiples: one small chart for each workload and load, all servers side by side."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cachemark.report.format import size, size_spread
from cachemark.report.plots.bars import BarItem, bars, cut_off
from cachemark.report.plots.frame import MEMORY_LABEL, SI_LABEL, TIME_LABEL
from cachemark.report.plots.palette import SERIES, Role
from cachemark.report.plots.ranking import figure, is_native, leader, said
from cachemark.report.plots.value import Plot, slug
from cachemark.report.tables import Table
from cachemark.report.value import Group, Report, Row
from cachemark.statistics import Interval


def overview(report: Report, width: int) -> list[Plot]:
    """Who is fastest, workload by workload; nothing where there is but one group."""
    if len(report.groups) < 2:
        return []
    return [_speed(report, groups, width) for groups in _same_work(report)]


def memory(report: Report, width: int) -> list[Plot]:
    """What the servers held in memory, where there are several to compare."""
    if len({group.server for group in report.groups}) < 2:
        return []
    plots = [_memory(report, groups, width) for groups in _same_work(report)]
    return [plot for plot in plots if plot]


def _same_work(report: Report) -> list[list[Group]]:
    """Groups that differ in their server only, in the order of the experiment."""
    experiment = report.header.experiment
    workloads = [workload.name for workload in experiment.workloads]
    loads = [load.name for load in experiment.loads]
    together: dict[tuple[int, int], list[Group]] = {}
    for group in report.groups:
        key = (workloads.index(group.workload), loads.index(group.load))
        together.setdefault(key, []).append(group)
    return [together[key] for key in sorted(together)]


def _speed(report: Report, groups: list[Group], width: int) -> Plot:
    first = groups[0]
    closed = first.metric == "rate"
    unit = "operations per second" if closed else "p99 of the response time (less is faster)"

    def take(row: Row) -> Interval | None:
        return figure(row, first.metric)

    def words(of: Interval | None) -> str:
        return said(of, first.metric)

    return _small(
        report,
        groups,
        width,
        name="overview",
        title="Throughput" if closed else "Response time",
        unit=unit,
        labels=SI_LABEL if closed else TIME_LABEL,
        take=take,
        words=words,
    )


def _memory(report: Report, groups: list[Group], width: int) -> Plot | None:
    if not any(row.summary.server_rss_bytes for group in groups for row in group.rows):
        return None

    def take(row: Row) -> Interval | None:
        return row.summary.server_rss_bytes

    def words(of: Interval | None) -> str:
        return "–" if of is None else size(of.value) if of.low is None else size_spread(of)

    return _small(
        report,
        groups,
        width,
        name="memory",
        title="Server memory",
        unit="server's resident memory after the window",
        labels=MEMORY_LABEL,
        take=take,
        words=words,
    )


def _small(
    report: Report,
    groups: list[Group],
    width: int,
    *,
    name: str,
    title: str,
    unit: str,
    labels: str,
    take: Callable[[Row], Interval | None],
    words: Callable[[Interval | None], str],
) -> Plot:
    first = groups[0]
    grid = _grid(report, groups)
    items = [
        _item(grid, client, server, take, words)
        for client in grid.clients
        for server in grid.servers
        if (client, server) in grid.rows
    ]
    told = "; ".join(item.about for item in items)
    return Plot(
        name=slug(name, first.workload, first.load),
        title=f"{title}: {first.workload} · {first.load}",
        caption=cut_off(items),
        alt=f"Bar chart of {unit}, {first.workload}, {first.load}: {told}.",
        spec=bars(items, width, axis=unit, labels=labels, key=grid.key()),
        table=_table(grid, take, words),
    )


class _Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Clients × servers that did the same work."""

    clients: list[str]
    servers: list[str]
    rows: dict[tuple[str, str], Row]
    leaders: dict[str, str]

    @property
    def coloured(self) -> bool:
        """Whether a colour says which server: not where its name stands there."""
        return len(self.clients) > 1 and 1 < len(self.servers) <= len(SERIES)

    def role(self, client: str, server: str) -> Role:
        """The colour of a bar: its server's, or else whether it is the first."""
        if self.coloured:
            return SERIES[self.servers.index(server)]
        if client == self.leaders[server]:
            return "first"
        return "yardstick" if is_native(self.rows[client, server]) else "other"

    def key(self) -> list[tuple[Role, str]]:
        """What the colours mean."""
        return [(SERIES[n], s) for n, s in enumerate(self.servers)] if self.coloured else []

    def who(self, client: str, server: str) -> str:
        """What stands beside a bar."""
        if len(self.clients) == 1 and len(self.servers) > 1:
            return server
        return client if self.coloured or len(self.servers) == 1 else f"{client} · {server}"


def _grid(report: Report, groups: list[Group]) -> _Grid:
    rows = {(row.summary.cell.client, g.server): row for g in groups for row in g.rows}
    experiment = report.header.experiment
    return _Grid(
        clients=_ordered([client for client, _ in rows], experiment.clients),
        servers=_ordered([server for _, server in rows], experiment.servers),
        rows=rows,
        leaders={group.server: leader(group) for group in groups},
    )


def _ordered(found: list[str], planned: list[str]) -> list[str]:
    """Each once, in the order of the experiment; what it does not name there comes last."""
    return list(dict.fromkeys([*[name for name in planned if name in found], *found]))


def _item(
    grid: _Grid,
    client: str,
    server: str,
    take: Callable[[Row], Interval | None],
    words: Callable[[Interval | None], str],
) -> BarItem:
    of = take(grid.rows[client, server])
    return BarItem(
        who=grid.who(client, server),
        role=grid.role(client, server),
        value=of.value if of else None,
        low=of.low if of else None,
        high=of.high if of else None,
        figure=words(of),
        about=f"{client} against {server} {words(of)}",
    )


def _table(
    grid: _Grid,
    take: Callable[[Row], Interval | None],
    words: Callable[[Interval | None], str],
) -> Table:
    cells: list[list[str]] = []
    for client in grid.clients:
        found = [grid.rows.get((client, server)) for server in grid.servers]
        cells.append([client, *["–" if row is None else words(take(row)) for row in found]])
    return Table(columns=["client", *grid.servers], rows=cells)
