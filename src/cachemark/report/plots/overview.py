"""Small multiples: one small chart for each workload and load, all servers side by side."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cachemark.analysis.number_format import size, size_with_error
from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell
from cachemark.report.document import Table, plain_table
from cachemark.report.model import ClientRow, Metric, Report, ranked_figure
from cachemark.report.plots.bar_chart import BarItem, bar_chart, clipped_note
from cachemark.report.plots.layout import MEMORY_LABEL, SI_LABEL, TIME_LABEL
from cachemark.report.plots.palette import SERIES, ColourRole, identity
from cachemark.report.plots.plot import Plot
from cachemark.report.plots.ranking import formatted, is_settled, leader
from cachemark.report.plots.server_groups import ServerGroups, server_groups
from cachemark.report.tables import ratio_heading, share_text

_Getter = Callable[[ClientRow], Interval | None]
_Formatter = Callable[[Interval | None], str]


def overview(report: Report, width: int) -> list[Plot]:
    """The clients' figures, workload by workload; empty if there is only one group."""
    if len(report.groups) < 2:
        return []
    return [_speed(report, work, width) for work in server_groups(report)]


def memory(report: Report, width: int) -> list[Plot]:
    """The servers' memory, if there are several to compare."""
    if len(set(servers_of(report))) < 2:
        return []
    plots = [_memory(report, work, width) for work in server_groups(report)]
    return [plot for plot in plots if plot]


def servers_of(report: Report) -> list[str]:
    """The servers of all groups, some of them more than once."""
    return [row.summary.cell.server for group in report.groups for row in group.rows]


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The bars of one workload and load, before their layout."""

    title: str
    closed: bool
    ratio_heading: str
    labels: str
    items: list[BarItem]
    key: list[tuple[ColourRole, str]]

    @property
    def unit(self) -> str:
        """The unit of its axis."""
        return (
            "operations per second" if self.closed else "p99 of the response time (less is faster)"
        )


def panels(report: Report) -> list[Panel]:
    """The clients' figures for each workload and load, in the order of the experiment."""
    return [_panel(report, work) for work in server_groups(report)]


def _panel(report: Report, work: ServerGroups) -> Panel:
    first = work.groups[0]
    closed = first.metric == "rate"
    grid, get, write = (
        _grid(report, work),
        _figure_getter(first.metric),
        _figure_formatter(first.metric),
    )
    return Panel(
        title=work.title,
        closed=closed,
        ratio_heading=ratio_heading(first),
        labels=SI_LABEL if closed else TIME_LABEL,
        items=_items(grid, get, write),
        key=grid.key(),
    )


def _figure_getter(metric: Metric) -> _Getter:
    return lambda row: ranked_figure(row.summary, metric)


def _figure_formatter(metric: Metric) -> _Formatter:
    return lambda of: formatted(of, metric)


def _speed(report: Report, work: ServerGroups, width: int) -> Plot:
    first = work.groups[0]
    panel = _panel(report, work)
    return _small(
        report,
        work,
        width,
        name="overview",
        title="Throughput" if panel.closed else "Response time",
        unit=panel.unit,
        labels=panel.labels,
        get=_figure_getter(first.metric),
        write=_figure_formatter(first.metric),
    )


def _memory(report: Report, work: ServerGroups, width: int) -> Plot | None:
    if not any(row.summary.server_rss_bytes for group in work.groups for row in group.rows):
        return None

    def get(row: ClientRow) -> Interval | None:
        return row.summary.server_rss_bytes

    def write(of: Interval | None) -> str:
        return "–" if of is None else size(of.value) if of.low is None else size_with_error(of)

    return _small(
        report,
        work,
        width,
        name="memory",
        title="Server memory",
        unit="server's resident memory after the window",
        labels=MEMORY_LABEL,
        get=get,
        write=write,
    )


def _small(
    report: Report,
    work: ServerGroups,
    width: int,
    *,
    name: str,
    title: str,
    unit: str,
    labels: str,
    get: _Getter,
    write: _Formatter,
) -> Plot:
    grid = _grid(report, work)
    items = _items(grid, get, write)
    bars_text = "; ".join(item.description for item in items)
    return Plot(
        name=work.name(name),
        title=f"{title}: {work.title}",
        caption=clipped_note(items),
        alt=f"Bar chart of {unit}, {work.title}: {bars_text}.",
        spec=bar_chart(items, width, axis=unit, labels=labels, key=grid.key()),
        table=_table(grid, get, write),
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
        # Those of all plots of this kind: a colour is one server's in each of them.
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
    """Each name once, in the order of the experiment; other names come last."""
    return list(dict.fromkeys([*[name for name in planned if name in present], *present]))


def _items(grid: _Grid, get: _Getter, write: _Formatter) -> list[BarItem]:
    return [
        _item(grid, client, server, get, write)
        for client in grid.clients
        for server in grid.servers
        if (client, server) in grid.rows
    ]


def _item(
    grid: _Grid,
    client: str,
    server: str,
    get: _Getter,
    write: _Formatter,
) -> BarItem:
    row = grid.rows[client, server]
    of = get(row)
    return BarItem(
        label=grid.label(client, server),
        role=grid.role(client, server),
        value=of.value if of else None,
        low=of.low if of else None,
        high=of.high if of else None,
        figure=write(of),
        description=f"{client} against {server} {write(of)}",
        ratio=share_text(row) if of else "",
        hollow=row.summary.valid == 1,
    )


def _table(
    grid: _Grid,
    get: _Getter,
    write: _Formatter,
) -> Table:
    cells: list[list[str]] = []
    for client in grid.clients:
        rows = [grid.rows.get((client, server)) for server in grid.servers]
        cells.append([client, *["–" if row is None else write(get(row)) for row in rows]])
    return plain_table(columns=["client", *grid.servers], rows=cells)
