"""The cost of an operation: CPU time of client and server, and the server's memory."""

from cachemark.analysis.number_format import interval, microseconds, size
from cachemark.analysis.statistics import Interval
from cachemark.report.document import Plot, Table, plain_table
from cachemark.report.model import ClientRow, Group
from cachemark.report.plots.bar_chart import BarItem, bar_chart, clipped_note
from cachemark.report.plots.palette import ColourRole
from cachemark.report.plots.plot import slug
from cachemark.report.tables import group_title

_SIDES: tuple[tuple[ColourRole, str], ...] = (("series1", "client"), ("series2", "server"))
_LABEL = "format(datum.value, '~r') + ' µs'"


def cpu_time(group: Group, width: int) -> Plot | None:
    """CPU time for each operation, of client and server; None if neither could be read."""
    rows = [row for row in group.rows if any(of for of in _costs(row))]
    if not rows:
        return None
    items = [
        _item(row, role, side, of)
        for row in rows
        for (role, side), of in zip(_SIDES, _costs(row), strict=True)
    ]
    bars_text = "; ".join(
        f"{row.name} client {_cpu_text(row.summary.client_cpu_us)}, "
        f"server {_cpu_text(row.summary.server_cpu_us)}"
        for row in rows
    )
    return Plot(
        name=slug("cpu", group.workload, group.load, group.common),
        title="CPU time per operation",
        caption=(
            "User and system time of the worker, and of all threads of the server, divided by "
            "the successful operations. Less is cheaper."
        )
        + (f" {arrows}" if (arrows := clipped_note(items)) else ""),
        alt=f"Bar chart of CPU time per operation against {group.common}: {bars_text}.",
        spec=bar_chart(items, width, axis="CPU time per operation", labels=_LABEL, key=_SIDES),
        subtitle=group_title(group),
        table=_table(rows),
    )


def _costs(row: ClientRow) -> tuple[Interval | None, Interval | None]:
    return row.summary.client_cpu_us, row.summary.server_cpu_us


def _cpu_text(of: Interval | None) -> str:
    return "not known" if of is None else microseconds(of.value)


def _item(row: ClientRow, role: ColourRole, side: str, of: Interval | None) -> BarItem:
    client = row.name
    return BarItem(
        label=client,
        role=role,
        of=of,
        figure=_cpu_text(of),
        description=f"{client}, {side}: {_cpu_text(of)} of CPU time per operation",
    )


def _table(rows: list[ClientRow]) -> Table:
    cells = [
        [
            row.name,
            *["–" if of is None else interval(of, "{:.1f}") for of in _costs(row)],
            "–" if (of := row.summary.server_rss_bytes) is None else size(of.value),
        ]
        for row in rows
    ]
    columns = ["client", "client CPU, µs/op", "server CPU, µs/op", "server RSS after the window"]
    return plain_table(columns=columns, rows=cells)
