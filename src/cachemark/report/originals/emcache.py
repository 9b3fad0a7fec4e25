"""The emcache suite in the format of its original: published figures beside the measured ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from cachemark.model.footprint import mean
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done
from cachemark.model.published import PublishedTable, Row, published_files
from cachemark.report.model import Bar, Section
from cachemark.report.originals import fills
from cachemark.report.originals.figures import totals


class _Column(msgspec.Struct, frozen=True):
    """The figure that the original published, if any, and how it is measured here."""

    published: str
    workload: str
    rate: Callable[[Sequence[Done]], float | None]


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """The original's three tables; all valid trials of a cell together give its figure."""
    tables = {table.figure: table for file in published_files("emcache") for table in file.table}
    valid = [outcome for outcome in outcomes if outcome.verdict == "VALID" and outcome.measure]
    return [
        _constant(tables["constant_key"], valid),
        _fill(tables["fill"], valid),
        _memory(tables["memory"], valid),
    ]


def _constant(table: PublishedTable, valid: list[Outcome]) -> Section:
    names = _server_client_names(valid, [column.workload for column in _COLUMNS.values()])
    here = {label: [_here(valid, label, column) for column in _COLUMNS.values()] for label in names}
    return Section(
        title="Set/get a constant key",
        columns=["server / client", *_COLUMNS],
        rows=[
            *[
                [f"published: {row.label}", *[_published_k(row, of) for of in _COLUMNS.values()]]
                for row in table.row
            ],
            *[
                [label, *("–" if rate is None else _k(rate / 1e3) for rate in rates)]
                for label, rates in here.items()
            ],
        ],
        notes=[
            "as published: operations over the time to the last send; answered: over the time to "
            "the reply that ends them",
            *table.remarks,
        ],
        unit="operations per second",
        bars=[*_published_bars(table), *_measured_bars(here)],
    )


def _published_k(row: Row, column: _Column) -> str:
    return _k(row.figures[column.published]) if column.published else "–"


def _published_bars(table: PublishedTable) -> list[Bar]:
    return [
        Bar(label=row.label, measure=title, value=1e3 * row.figures[of.published], published=True)
        for row in table.row
        for title, of in _COLUMNS.items()
        if of.published
    ]


def _measured_bars(here: Mapping[str, Sequence[float | None]]) -> list[Bar]:
    return [
        Bar(label=label, measure=title, value=value, published=False)
        for label, rates in here.items()
        for (title, of), value in zip(_COLUMNS.items(), rates, strict=True)
        if of.published and value is not None
    ]


def _fill(table: PublishedTable, valid: list[Outcome]) -> Section:
    rows = [
        [f"published: {row.label}",
         f"{_k(row.figures['items_k'])} – {row.figures['megabytes']:.0f} MB/s", "–"]
        for row in table.row
    ]  # fmt: skip
    played = [outcome for outcome in valid if _is_fill(outcome)]
    for label in _server_client_names(played, [o.trial.cell.workload for o in played]):
        windows = [o.measure for o in played if o.measure and _server_client(o.trial.cell) == label]
        sent, elapsed = map(fills.send_s, windows), (one.elapsed_ns / 1e9 for one in windows)
        rows.append([label, _fill_rate(windows, sent), _fill_rate(windows, elapsed)])
    return Section(
        title=f"Fill the cache to {_percent(played)} %",
        columns=["server / client", "as published (per thread, time in send)", "by wall clock"],
        rows=rows,
        notes=[
            "as published: items over the summed seconds that the callers spent in the call that "
            "sends a batch; by wall clock: items of all callers, to the last answer; "
            "a MB/s is 10⁶ bytes",
            *table.remarks,
        ],
    )


def _memory(table: PublishedTable, valid: list[Outcome]) -> Section:
    rows = [
        [
            f"published: {row.label}",
            f"{row.figures['user_mb']:.0f} MB",
            f"{row.figures['bytes_mb']:.0f} MB ({row.figures['bytes_percent']:.0f}%)",
            f"{row.figures['rss_mb']:.0f} MB ({row.figures['rss_percent']:.0f}%)",
            "–",
        ]
        for row in table.row
    ]
    played = [outcome for outcome in valid if _is_fill(outcome) and outcome.server_use]
    for server in dict.fromkeys(outcome.trial.cell.server for outcome in played):
        rows.append([server, *_efficiency([o for o in played if o.trial.cell.server == server])])
    return Section(
        title=f"Memory efficiency at {_percent(played)} %",
        columns=["server", "user stored", "of the server's bytes", "of its RSS", "of RSS growth"],
        rows=rows,
        notes=[
            "user stored: key and value bytes of the fill; RSS growth leaves out what the empty "
            "server took; a MB is 2²⁰ bytes",
            *table.remarks,
        ],
    )


def _percent(played: list[Outcome]) -> str:
    """How full the servers were, which an option can change."""
    percents = dict.fromkeys(fill.workload.fill_percent or 0 for fill in played) or {80: None}
    return ", ".join(f"{percent:g}" for percent in percents)


def _efficiency(played: list[Outcome]) -> list[str]:
    of = mean([fills.footprint(fill) for fill in played])
    wholes = (of.reported_bytes, of.rss_bytes, of.growth_bytes)
    return [_megabytes(of.user_bytes), *[_part(of.user_bytes, whole) for whole in wholes]]


def _part(user_bytes: float, whole_bytes: float | None) -> str:
    """A whole, and the users' part of it; a dash where it is not known."""
    return f"{_megabytes(whole_bytes)} ({user_bytes / whole_bytes:.0%})" if whole_bytes else "–"


def _megabytes(size_bytes: float) -> str:
    megabytes = size_bytes / fills.MEMORY_MB
    return f"{megabytes:.0f} MB" if megabytes >= 100 else f"{megabytes:.1f} MB"


def _is_fill(outcome: Outcome) -> bool:
    """Also under another name, which it has if options gave it more keys."""
    return outcome.workload.fill_percent is not None


def _server_client_names(valid: list[Outcome], workloads: Sequence[str]) -> list[str]:
    """Server and client of every row, in the order of the experiment."""
    chosen = [o.trial.cell for o in valid if o.trial.cell.workload in workloads]
    cells = sorted(chosen, key=lambda cell: (cell.server, cell.client))
    return list(dict.fromkeys(map(_server_client, cells)))


def _server_client(cell: Cell) -> str:
    return f"{cell.server} / {cell.client}"


def _here(valid: list[Outcome], label: str, column: _Column) -> float | None:
    return column.rate([
        outcome.measure
        for outcome in valid
        if outcome.measure
        and outcome.trial.cell.workload == column.workload
        and _server_client(outcome.trial.cell) == label
    ])  # fmt: skip


def _rate(windows: Sequence[Done]) -> float | None:
    """Operations a second, to the last reply; None without windows."""
    of = totals(windows)
    return of.ok / of.elapsed_ns * 1e9 if windows else None


def _send_rate(windows: Sequence[Done]) -> float | None:
    """Operations a second, to the last send; None where a worker does not report this time."""
    of = totals(windows)
    known = windows and all(window.send_elapsed_ns > 0 for window in windows)
    return of.ok / of.send_elapsed_ns * 1e9 if known else None


# The columns of the first table.
_COLUMNS = {
    "get": _Column("get_k", "get", _rate),
    "set": _Column("set_k", "set", _rate),
    "set noreply, as published": _Column("set_noreply_k", "set-noreply", _send_rate),
    "set noreply, answered": _Column("", "set-noreply", _rate),
    "version": _Column("version_k", "version", _rate),
}


def _fill_rate(windows: Sequence[Done], seconds: Iterable[float]) -> str:
    """Items and megabytes a second; a dash where a worker does not report the time."""
    times = list(seconds)
    if not all(time > 0 for time in times):
        return "–"
    items_k = sum(map(fills.items, windows)) / sum(times) / 1e3
    megabytes = sum(map(fills.user_bytes, windows)) / sum(times) / fills.RATE_MB
    return f"{_k(items_k)} – {megabytes:.0f} MB/s"


def _k(thousands: float) -> str:
    return f"{thousands:.1f} k/s" if thousands < 10 else f"{thousands:.0f} k/s"
