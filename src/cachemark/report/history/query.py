"""Index → lines: the requested cells, run by run, each compared with the previous run."""

import re
import sqlite3
from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics import Interval, sum_if_known
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell
from cachemark.model.plan import is_repeat
from cachemark.report.cells import CELL_FIELDS, SEPARATOR, cell_title
from cachemark.report.history.index import RunIndex
from cachemark.report.history.model import CellHistory, Entry, History, RunRow


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The requested cells, machines and figures; `*` in a name matches anything.

    A name is a client, or a cell as reports print it: `client · server · workload · load`.
    """

    names: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    last: int | None = None

    @property
    def cells(self) -> bool:
        """Whether cells are requested, rather than the list of runs."""
        return bool(self.names or self.server or self.workload or self.load)


def query_history(index: RunIndex, query: HistoryQuery) -> History:
    """The lines of the requested cells; if there are none, the runs. Raises UsageError."""
    if not query.cells:
        return History(lines=[], runs=_runs(index, query))
    cells = _cells(index, query)
    histories = [line for cell, work in cells for line in _cell_history(index, query, cell, work)]
    lines = [
        msgspec.structs.replace(
            line,
            entries=[
                msgspec.structs.replace(each, ratio_to_previous=ratio)
                for each, ratio in zip(known, _ratios_to_previous(line, known), strict=True)
            ],
        )
        for line, known in histories
    ]
    if not lines:
        raise UsageError("no such cell on such a machine", "cachemark history lists the runs")
    return History(lines=lines, notes=_notes(lines))


def _runs(index: RunIndex, query: HistoryQuery) -> list[RunRow]:
    sql = """
        SELECT run.*,
            count(trial.trial) - coalesce(sum(trial.is_replay OR trial.verdict = 'unsupported'), 0)
            + (SELECT count(*) FROM fault WHERE fault.folder = run.folder) AS played,
            coalesce(sum(trial.is_replay), 0) AS replays, coalesce(sum(trial.valid), 0) AS valid
        FROM run LEFT JOIN trial USING (folder) GROUP BY run.folder
        ORDER BY created_at, folder
    """
    runs = [
        RunRow(**{field: row[field] for field in RunRow.__struct_fields__})
        for row in index.rows(sql)
        if _matches(row["host"], query.host)
    ]
    return runs[-query.last :] if query.last else runs


def _cells(index: RunIndex, query: HistoryQuery) -> list[tuple[Cell, str]]:
    sql = "SELECT DISTINCT client, server, workload, load, work FROM trial ORDER BY 1, 2, 3, 4"
    stored = [
        (Cell(**{f: row[f] for f in CELL_FIELDS}), str(row["work"])) for row in index.rows(sql)
    ]
    known = [(cell, work) for cell, work in stored if not is_repeat(cell)]
    for name in query.names:
        if not any(_matches_name(cell, name) for cell, _ in known):
            clients = sorted({cell.client for cell, _ in known})
            remedy = f"clients in the store: {', '.join(clients)}" if clients else "it holds none"
            raise UsageError(f"{name}: no such client or cell in the store", remedy)
    return [
        (cell, work)
        for cell, work in known
        if (not query.names or any(_matches_name(cell, name) for name in query.names))
        and _matches(cell.server, query.server)
        and _matches(cell.workload, query.workload)
        and _matches(cell.load, query.load)
    ]


def _matches_name(cell: Cell, name: str) -> bool:
    if SEPARATOR in name:
        return _matches(cell_title(cell), (name,))
    return _matches(cell.client, (name,))


def _matches(text: str, names: Sequence[str]) -> bool:
    """Whether a text matches one of the names; true if there are no names."""
    patterns = [".*".join(map(re.escape, name.split("*"))) for name in names]
    return not names or any(re.fullmatch(pattern, text) for pattern in patterns)


def _cell_history(
    index: RunIndex, query: HistoryQuery, cell: Cell, work: str
) -> list[tuple[CellHistory, list[Entry]]]:
    """A cell's line, and its entries; none if no requested machine played it."""
    sql = """
        SELECT trial.*, run.created_at, run.cachemark, run.host, run.machine
        FROM trial JOIN run USING (folder)
        WHERE client = ? AND server = ? AND workload = ? AND load = ? AND work = ?
        ORDER BY created_at, folder, trial
    """
    runs: dict[str, list[sqlite3.Row]] = {}
    for row in index.rows(sql, (*(getattr(cell, field) for field in CELL_FIELDS), work)):
        if _matches(row["host"], query.host):
            runs.setdefault(row["folder"], []).append(row)
    if not runs:
        return []
    closed = next(iter(runs.values()))[0]["schedule"] == "closed"
    figures = list(query.figures) or (["rate", "p99"] if closed else ["p50", "p99"])
    known = [_entry(index, rows, figures) for rows in runs.values()]
    known = known[-query.last :] if query.last else known
    return [(CellHistory(cell=cell, work=work, figures=figures, entries=[]), known)]


def _entry(index: RunIndex, rows: list[sqlite3.Row], figures: list[str]) -> Entry:
    valid = [row for row in rows if row["valid"]]
    # A trial that never began has no versions.
    named = next((row for row in rows if row["library_version"]), rows[0])
    served = next((row for row in rows if row["server_version"]), rows[0])
    return Entry(
        folder=named["folder"],
        created_at=named["created_at"],
        cachemark=named["cachemark"],
        host=named["host"],
        machine=named["machine"],
        library_version=named["library_version"],
        runtime=named["runtime"],
        server_version=served["server_version"],
        trials=sum(not row["is_replay"] for row in rows),
        replays=sum(bool(row["is_replay"]) for row in rows),
        valid=len(valid),
        reason=next((row["reason"] for row in rows if row["reason"]), ""),
        evictions=sum_if_known([row["evictions"] for row in valid]),
        figures={name: _figure(index, valid, name) for name in figures},
    )


def _figure(index: RunIndex, valid: list[sqlite3.Row], name: str) -> Interval | None:
    keys = ("folder", *CELL_FIELDS, "work")
    sql = f"SELECT * FROM pool WHERE {' AND '.join(f'{key} = ?' for key in keys)} AND figure = ?"
    known = index.rows(sql, [*(valid[0][key] for key in keys), name]) if valid else iter(())
    for row in known:
        return Interval(value=row["value"], low=row["low"], high=row["high"], bounds=row["bounds"])
    return None


def _ratios_to_previous(line: CellHistory, known: list[Entry]) -> list[float | None]:
    """The first figure of each entry, relative to the previous entry of the same machine."""
    before: dict[tuple[str, str], float] = {}
    ratios: list[float | None] = []
    for entry in known:
        machine, of = (entry.host, entry.machine), entry.figures[line.figures[0]]
        previous, now = before.get(machine), of.value if of else None
        ratios.append(now / previous if now and previous else None)
        if now:
            before[machine] = now
    return ratios


def _notes(lines: list[CellHistory]) -> list[str]:
    notes: list[str] = []
    names = [line.cell for line in lines]
    if len(set(names)) < len(names):
        notes.append("cells with the same name are listed separately if their work differs")
    machines = {(e.host, e.machine) for line in lines for e in line.entries}
    if len(machines) > 1:
        notes.append("each run is compared with the previous run on the same machine")
    return notes
