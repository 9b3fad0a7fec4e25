"""The store's index: the contents of the run folders in SQLite, so that queries are quick.

The index is made from the folders alone. When it is opened, new and changed runs are read, and
deleted runs are removed. A file that is damaged, or was made by another version, is created again.
If the file cannot be written, the index is in memory.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from cachemark.analysis.rounds.ranking import cell_figure
from cachemark.analysis.statistics import FIGURES, evictions
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Outcome
from cachemark.model.plan import trial_count
from cachemark.model.run_header import HostFacts
from cachemark.model.work_identity import fingerprint
from cachemark.report.conclusions import first_of, one_sentence
from cachemark.report.hosts import placement_text
from cachemark.report.resilience.matrix import counted_verdicts
from cachemark.report.run_head import build_head
from cachemark.report.stored_run import StoredRun, StoredRuns

# A new number where a column, or the meaning of a figure, changes.
VERSION = 8
_PATIENCE_S = 30.0

_RUN = (
    "folder", "stamp", "name", "kind", "created_at", "experiment", "first", "answer", "cachemark",
    "host", "machine", "margin_percent", "planned", "problem",
)  # fmt: skip
_TRIAL = (
    "folder", "trial", "block", "client", "server", "workload", "load", "work", "schedule",
    "is_replay", "valid", "verdict", "reason", "library_version", "runtime", "server_version",
    "evictions",
)  # fmt: skip
# A cell of a run of `resilience`.
_FAULT = ("folder", "client", "profile", "fault", "sitting", "verdict")
_POOL = (
    "folder", "client", "server", "workload", "load", "work", "figure",
    "value", "low", "high", "bounds",
)  # fmt: skip


_COLUMNS = {"run": _RUN, "trial": _TRIAL, "pool": _POOL, "fault": _FAULT}
_PARTS = ("trial", "pool", "fault")
_BLANK: dict[str, object] = {**dict.fromkeys(_RUN, ""), "kind": "grid", "planned": 0}
_OUTCOMES, _REPORT = "outcomes.jsonl", "report.md"
# The files from which a run is read. A report that is newer than the outcomes has an answer.
_READ = ("run.json", _OUTCOMES, _REPORT, "resilience.json", "cells.jsonl")
# The rows of a run by their table.
_Rows = dict[str, list[tuple[object, ...]]]
_Progress = Callable[[str], None]


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_SCHEMA = f"""
CREATE TABLE run ({_columns(_RUN)}, PRIMARY KEY (folder));
CREATE TABLE trial ({_columns(_TRIAL)}, PRIMARY KEY (folder, trial));
CREATE TABLE pool ({_columns(_POOL)}, PRIMARY KEY ({_columns(_POOL[:7])}));
CREATE TABLE fault ({_columns(_FAULT)}, PRIMARY KEY ({_columns(_FAULT[:5])}));
CREATE INDEX by_cell ON trial (client, server, workload, load);
PRAGMA user_version = {VERSION};
"""


class RunIndex:
    """An index; opening it brings it up to date, and `progress` gets which run it reads."""

    def __init__(
        self, runs: StoredRuns, *, rebuild: bool = False, progress: _Progress = lambda _: None
    ) -> None:
        self._runs, self._progress = runs, progress
        if not runs.root.is_dir():
            raise UsageError(f"{runs.root}: no such folder", "make a run: cachemark run quick")
        if rebuild:
            _remove(runs.index)
        self._connection = self._open()

    def __enter__(self) -> "RunIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; any thread may use the index, one at a time."""
        self._connection.close()

    def rows(self, query: str, values: Sequence[object] = ()) -> Iterator[sqlite3.Row]:
        """The rows of a query."""
        yield from self._connection.execute(query, values)

    def _open(self) -> sqlite3.Connection:
        for remove in (False, True):
            if remove:
                _remove(self._runs.index)
            try:
                return self._fresh(_connect(str(self._runs.index)))
            except sqlite3.OperationalError:
                break  # it cannot be written, or somebody else holds it
            except sqlite3.DatabaseError:
                continue
        return self._fresh(_connect(":memory:"))

    def _fresh(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        try:
            # One writer at a time, who reads the folders when the others have written.
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                _make(connection)
            _refresh(connection, self._runs, self._progress)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    return connection


def _remove(index: Path) -> None:
    for path in (index, index.with_name(f"{index.name}-journal")):
        with contextlib.suppress(OSError):
            path.unlink()


def _make(connection: sqlite3.Connection) -> None:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        connection.execute(f'DROP TABLE "{name}"')
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)


def _refresh(connection: sqlite3.Connection, runs: StoredRuns, progress: _Progress) -> None:
    known = dict(connection.execute("SELECT folder, stamp FROM run").fetchall())
    faults = set(runs.resilience_names())
    stamps = {name: stamp_of(runs.root / name) for name in {*runs.names(), *faults}}
    for folder in known.keys() - stamps.keys():
        _remove_rows(connection, folder, ("run", *_PARTS))
    changed = sorted(name for name, stamp in stamps.items() if known.get(name) != stamp)
    for number, folder in enumerate(changed, 1):
        if len(changed) > 1:
            progress(f"reading run {number} of {len(changed)}: {folder}")
        _remove_rows(connection, folder, ("run", *_PARTS))
        read = _rows_of_faults if folder in faults else _rows_of_trials
        _add(connection, folder, stamps[folder], partial(read, runs, folder, stamps[folder]))


def _remove_rows(connection: sqlite3.Connection, folder: str, tables: Sequence[str]) -> None:
    for table in tables:
        connection.execute(f"DELETE FROM {table} WHERE folder = ?", (folder,))


def stamp_of(folder: Path) -> str:
    """A value that changes with every file from which a run is read."""
    parts: list[str] = []
    for name in _READ:
        with contextlib.suppress(OSError):
            facts = (folder / name).stat()
            parts.append(f"{name}:{facts.st_size}:{facts.st_mtime_ns}")
    return " ".join(parts)


def _add(
    connection: sqlite3.Connection, folder: str, stamp: str, read: Callable[[], _Rows]
) -> None:
    try:
        for table, rows in read().items():
            _insert(connection, table, _COLUMNS[table], rows)
    except sqlite3.DatabaseError:
        raise
    except UsageError as error:
        _add_problem(connection, folder, stamp, error.text)
    except Exception as error:  # a run that does not fit together must not hide the others
        text = f"its contents do not fit together: {type(error).__name__}: {error}"
        _add_problem(connection, folder, stamp, text)


def _rows_of_trials(runs: StoredRuns, folder: str, stamp: str) -> _Rows:
    return index_rows(runs.open(folder), stamp)


def _rows_of_faults(runs: StoredRuns, folder: str, stamp: str) -> _Rows:
    run = runs.open_resilience(folder)
    header, outcomes = run.header, run.outcomes()
    row = _run_row(
        header.host, folder, stamp, name=header.name, kind="resilience",
        created_at=header.created_at, experiment="resilience", cachemark=header.cachemark,
        answer=counted_verdicts(outcomes), planned=len(header.plan.cells()),
    )  # fmt: skip
    cells = [
        (*msgspec.structs.astuple(outcome.name), outcome.verdict or "not judged")
        for outcome in {outcome.name: outcome for outcome in outcomes}.values()
    ]
    return {"run": [row], "fault": [(folder, *cell) for cell in cells]}


def _add_problem(connection: sqlite3.Connection, folder: str, stamp: str, problem: str) -> None:
    _remove_rows(connection, folder, _PARTS)
    row = _BLANK | {"folder": folder, "stamp": stamp, "problem": problem}
    _insert(connection, "run", _RUN, [tuple(row[name] for name in _RUN)])


def index_rows(run: StoredRun, stamp: str) -> _Rows:
    """The rows of a run, its trials and its percentiles, by table. Raises UsageError."""
    folder, experiment = run.folder.name, run.header.experiment
    # Indexes of replays follow the plan's; so do a search's, which has no plan.
    planned = None if experiment.until_valid is None else trial_count(experiment)
    # If two processes wrote, a trial may be there twice: the later one counts.
    outcomes = list({outcome.trial.index: outcome for outcome in run.outcomes()}.values())
    trials = [_trial_row(folder, outcome, planned) for outcome in outcomes]
    row = _run_row_of(run, folder, stamp, outcomes)
    return {"run": [row], "trial": trials, "pool": _pool_rows(folder, outcomes)}


def _insert(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Sequence[tuple[object, ...]],
) -> None:
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _run_row_of(
    run: StoredRun, folder: str, stamp: str, outcomes: Sequence[Outcome]
) -> tuple[object, ...]:
    header, experiment = run.header, run.header.experiment
    first, answer = "", ""
    if outcomes and _has_its_report(run.folder):
        report = build_head(header, outcomes)
        first, answer = first_of(report), one_sentence(report)
    # Another placement is another machine.
    beside = f"; hosts: {placement_text(header.hosts)}" if header.hosts else ""
    return _run_row(
        header.host, folder, stamp, beside, name=header.name, created_at=header.created_at,
        experiment=experiment.name, first=first, answer=answer, cachemark=header.cachemark,
        margin_percent=experiment.margin_percent, planned=trial_count(experiment),
    )  # fmt: skip


def _has_its_report(folder: Path) -> bool:
    """Whether the report was written after the last outcome.

    Making a report takes seconds: too long after each trial of a run that goes on.
    """
    try:
        outcomes, report = ((folder / name).stat().st_mtime_ns for name in (_OUTCOMES, _REPORT))
    except OSError:
        return False
    return outcomes <= report


def _run_row(
    host: HostFacts, folder: str, stamp: str, beside: str = "", **fields: object
) -> tuple[object, ...]:
    machine = f"{host.cpu_model or 'unknown CPU'}, {len(host.usable_cpus)} CPUs{beside}"
    row = _BLANK | {"folder": folder, "stamp": stamp, "host": host.name, "machine": machine}
    return tuple((row | fields)[name] for name in _RUN)


def _trial_row(folder: str, outcome: Outcome, planned: int | None) -> tuple[object, ...]:
    """The row of a trial; from index `planned` on, trials are replays."""
    trial, cell = outcome.trial, outcome.trial.cell
    valid = outcome.verdict == "VALID" and outcome.measure is not None
    reason = outcome.reason or "; ".join(outcome.reasons) or outcome.verdict or outcome.state
    worker, server = outcome.worker, outcome.server
    return (
        folder, trial.index, trial.block, cell.client, cell.server, cell.workload, cell.load,
        fingerprint(outcome), outcome.load.schedule, planned is not None and trial.index >= planned,
        valid, outcome.verdict or outcome.state, "" if valid else reason,
        worker.library_version if worker else "", worker.runtime if worker else "",
        server.version if server else "", evictions([outcome]),
    )  # fmt: skip


def _pool_rows(folder: str, outcomes: Sequence[Outcome]) -> list[tuple[object, ...]]:
    """A row for each figure that the valid trials of a cell have."""
    works: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        works.setdefault(fingerprint(outcome), []).append(outcome)
    return [
        (folder, *msgspec.structs.astuple(cell), work, name, of.value, of.low, of.high, of.bounds)
        for work, trials in works.items()
        for cell in dict.fromkeys(trial.trial.cell for trial in trials)
        for name in FIGURES
        if (of := cell_figure(trials, cell, name)) is not None
    ]
