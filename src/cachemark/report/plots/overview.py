"""Small multiples: one small chart for each workload and load, all servers side by side."""

from collections.abc import Callable

import msgspec

from cachemark.analysis.number_format import size, size_with_error
from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell
from cachemark.model.plan import NO_SERVER
from cachemark.report.document import Plot, Table, plain_table
from cachemark.report.model import ClientRow, Group, Metric, Report, ranked_figure
from cachemark.report.plots.bar_chart import BarItem, bar_chart, clipped_note
from cachemark.report.plots.layout import MEMORY_LABEL, SI_LABEL, TIME_LABEL
from cachemark.report.plots.palette import SERIES, ColourRole, identity
from cachemark.report.plots.plot import slug
from cachemark.report.plots.ranking import formatted, is_settled, leader
from cachemark.report.tables import ratio_heading, share_text


class ServerGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups of one workload and load; `apart` if all of them are in-process caches.

    `servers`: of all groups of the report that are shown in the same way.
    """

    groups: list[Group]
    servers: frozenset[str]
    apart: bool = False

    @property
    def title(self) -> str:
        """Such as `get · 1-thread`."""
        first = self.groups[0]
        return f"{first.workload} · {first.load}" + (" · in the process" if self.apart else "")

    def name(self, plot: str) -> str:
        """The name of a plot's file, one for each in a report."""
        first = self.groups[0]
        return slug(plot, first.workload, first.load, *(["in-process"] if self.apart else []))


def server_groups(report: Report) -> list[ServerGroups]:
    """All groups, in the order of the experiment.

    In-process caches are shown beside clients that use the network, unless the bars of the latter
    would somewhere be too short to read; then all of them come last, with axes of their own.
    """
    experiment = report.header.experiment
    workloads = [workload.name for workload in experiment.workloads]
    loads = [load.name for load in experiment.loads]
    together: dict[tuple[int, int], list[Group]] = {}
    for group in report.groups:
        key = (workloads.index(group.workload), loads.index(group.load))
        together.setdefault(key, []).append(group)
    works = [together[key] for key in sorted(together)]
    if not any(_dwarfs(groups) for groups in works):
        return _alike(works)
    networked = [[group for group in groups if group.server != NO_SERVER] for groups in works]
    in_process = [[group for group in groups if group.server == NO_SERVER] for groups in works]
    return [*_alike(networked), *_alike(in_process, apart=True)]


def _alike(works: list[list[Group]], *, apart: bool = False) -> list[ServerGroups]:
    rows = [row for groups in works for group in groups for row in group.rows]
    servers = frozenset(row.summary.cell.server for row in rows)
    return [ServerGroups(groups=groups, servers=servers, apart=apart) for groups in works if groups]


def _dwarfs(groups: list[Group]) -> bool:
    """Whether in-process caches would leave slivers of the bars of the others."""
    in_process = [group for group in groups if group.server == NO_SERVER]
    networked = [group for group in groups if group.server != NO_SERVER]
    rates = groups[0].metric == "rate"
    shortest = _MIN_BAR_PART * _highest(in_process)
    return bool(networked) and rates and _highest(networked) < shortest


def _highest(groups: list[Group]) -> float:
    figures = [ranked_figure(row.summary, group.metric) for group in groups for row in group.rows]
    return max((of.value for of in figures if of), default=0.0)


class _SmallFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The figure of small charts, and how it is named and written."""

    name: str
    title: str
    unit: str
    labels: str
    get: Callable[[ClientRow], Interval | None]
    write: Callable[[Interval | None], str]


def _speed(metric: Metric) -> _SmallFigure:
    closed = metric == "rate"
    return _SmallFigure(
        name="overview",
        title="Throughput" if closed else "Response time",
        unit="operations per second" if closed else "p99 of the response time (less is faster)",
        labels=SI_LABEL if closed else TIME_LABEL,
        get=lambda row: ranked_figure(row.summary, metric),
        write=lambda of: formatted(of, metric),
    )


_MEMORY = _SmallFigure(
    name="memory",
    title="Server memory",
    unit="server's resident memory after the window",
    labels=MEMORY_LABEL,
    get=lambda row: row.summary.server_rss_bytes,
    write=lambda of: (
        "–" if of is None else size(of.value) if of.low is None else size_with_error(of)
    ),
)


def overview(report: Report, width: int) -> list[Plot]:
    """The clients' figures, workload by workload; empty if there is only one group."""
    if len(report.groups) < 2:
        return []
    works = server_groups(report)
    return [_small(report, work, width, _speed(work.groups[0].metric)) for work in works]


def memory(report: Report, width: int) -> list[Plot]:
    """The servers' memory, if there are several to compare."""
    if len({row.summary.cell.server for group in report.groups for row in group.rows}) < 2:
        return []
    return [
        _small(report, work, width, _MEMORY)
        for work in server_groups(report)
        if any(_MEMORY.get(row) for group in work.groups for row in group.rows)
    ]


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The bars of one workload and load, before their layout. `unit` is that of its axis."""

    title: str
    closed: bool
    unit: str
    ratio_heading: str
    items: list[BarItem]
    key: list[tuple[ColourRole, str]]


def panels(report: Report) -> list[Panel]:
    """The clients' figures for each workload and load, in the order of the experiment."""
    return [_panel(report, work) for work in server_groups(report)]


def _panel(report: Report, work: ServerGroups) -> Panel:
    first, grid = work.groups[0], _grid(report, work)
    figure = _speed(first.metric)
    return Panel(
        title=work.title,
        closed=first.metric == "rate",
        unit=figure.unit,
        ratio_heading=ratio_heading(first),
        items=_items(grid, figure),
        key=grid.key(),
    )


def _small(report: Report, work: ServerGroups, width: int, figure: _SmallFigure) -> Plot:
    grid = _grid(report, work)
    items = _items(grid, figure)
    bars_text = "; ".join(item.description for item in items)
    return Plot(
        name=work.name(figure.name),
        title=f"{figure.title}: {work.title}",
        caption=clipped_note(items),
        alt=f"Bar chart of {figure.unit}, {work.title}: {bars_text}.",
        spec=bar_chart(items, width, axis=figure.unit, labels=figure.labels, key=grid.key()),
        table=_table(grid, figure),
    )


class _Grid(msgspec.Struct, frozen=True, kw_only=True):
    """All combinations of client and server that did the same work."""

    clients: list[str]
    servers: list[str]
    rows: dict[tuple[str, str], ClientRow]
    firsts: frozenset[Cell]
    own_colours: bool

    @property
    def coloured(self) -> bool:
        """Whether the colour shows the server; not if the server's name is in the label."""
        return len(self.clients) > 1 and 1 < len(self.servers) <= len(SERIES)

    def role(self, client: str, server: str) -> ColourRole:
        """The colour of a bar: that of its server, or one that marks the first."""
        if self.coloured:
            return SERIES[self.servers.index(server)]
        row = self.rows[client, server]
        if row.yardstick:
            return "yardstick"
        first = row.summary.cell in self.firsts
        return identity(row.series if self.own_colours else None, first=first)

    def key(self) -> list[tuple[ColourRole, str]]:
        """The legend: the meaning of the colours."""
        return [(SERIES[n], s) for n, s in enumerate(self.servers)] if self.coloured else []

    def label(self, client: str, server: str) -> str:
        """The label of a bar."""
        if len(self.clients) == 1 and len(self.servers) > 1:
            return server
        return client if self.coloured or len(self.servers) == 1 else f"{client} · {server}"


def _grid(report: Report, work: ServerGroups) -> _Grid:
    groups = work.groups
    cells = {row.summary.cell: row for group in groups for row in group.rows}
    rows = {(cell.client, cell.server): row for cell, row in cells.items()}
    experiment = report.header.experiment
    return _Grid(
        clients=_ordered([client for client, _ in rows], experiment.clients),
        # From all plots of this kind: a server has the same colour in each of them.
        servers=_ordered(sorted(work.servers), experiment.servers),
        rows=rows,
        own_colours=all(group.coloured for group in groups),
        firsts=frozenset(
            row.summary.cell
            for group in groups
            for row in group.rows
            if row.name == leader(group) and is_settled(group)
        ),
    )


def _ordered(present: list[str], planned: list[str]) -> list[str]:
    return list(dict.fromkeys([*[name for name in planned if name in present], *present]))


def _items(grid: _Grid, figure: _SmallFigure) -> list[BarItem]:
    return [
        _item(grid, client, server, figure)
        for client in grid.clients
        for server in grid.servers
        if (client, server) in grid.rows
    ]


def _item(grid: _Grid, client: str, server: str, figure: _SmallFigure) -> BarItem:
    row = grid.rows[client, server]
    of = figure.get(row)
    return BarItem(
        label=grid.label(client, server),
        role=grid.role(client, server),
        of=of,
        figure=figure.write(of),
        description=f"{client} against {server} {figure.write(of)}",
        ratio=share_text(row) if of else "",
        hollow=row.summary.valid == 1,
    )


def _table(grid: _Grid, figure: _SmallFigure) -> Table:
    cells: list[list[str]] = []
    for client in grid.clients:
        rows = [grid.rows.get((client, server)) for server in grid.servers]
        cells.append(
            [client, *["–" if row is None else figure.write(figure.get(row)) for row in rows]]
        )
    return plain_table(columns=["client", *grid.servers], rows=cells)


# Where the longest bar is shorter than this part of its axis, all of them are slivers: in a small
# panel, thinner than the lines of their own intervals.
_MIN_BAR_PART = 1 / 10
