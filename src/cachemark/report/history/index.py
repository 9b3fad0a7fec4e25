"""The store's index: the contents of the run folders in SQLite, so that queries are quick.

The index is made from the folders alone. When it is opened, new and changed runs are read, and
deleted runs are removed. A file that is damaged, or was made by another version, is created again.
If the file cannot be written, the index is in memory.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from cachemark.analysis.statistics import FIGURES, Figure, over_trials, withholds
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Outcome
from cachemark.model.plan import trial_count
from cachemark.model.work_identity import fingerprint
from cachemark.report.hosts import placement_text
from cachemark.runs.storage.store import INDEX, INDEX_JOURNAL, Run, open_run, run_names

# A new number where a column, or the meaning of a figure, changes.
VERSION = 5
# Stands for a figure that the verdict on a trial withholds.
WITHHELD = "withheld"
_FIGURES = list(FIGURES)
# A percentile is that of all valid trials of a cell together: no mean of theirs.
_POOLED = [name for name, figure in FIGURES.items() if figure.percent is not None]
_PATIENCE_S = 30.0

_RUN = (
    "folder", "stamp", "created_at", "experiment", "cachemark", "host", "machine",
    "margin_percent", "planned", "problem",
)  # fmt: skip
_TRIAL = (
    "folder", "trial", "block", "client", "server", "workload", "load", "work", "schedule",
    "is_replay", "valid", "verdict", "reason", "library_version", "runtime", "server_version",
)  # fmt: skip
_POOL = (
    "folder", "client", "server", "workload", "load", "work", "figure",
    "value", "low", "high", "bounds",
)  # fmt: skip


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_SCHEMA = f"""
CREATE TABLE run ({_columns(_RUN)}, PRIMARY KEY (folder));
CREATE TABLE trial ({_columns([*_TRIAL, *_FIGURES])}, PRIMARY KEY (folder, trial));
CREATE TABLE pool ({_columns(_POOL)}, PRIMARY KEY ({_columns(_POOL[:7])}));
CREATE INDEX by_cell ON trial (client, server, workload, load);
PRAGMA user_version = {VERSION};
"""


class RunIndex:
    """An index; opening it brings it up to date."""

    def __init__(self, root: Path, *, rebuild: bool = False) -> None:
        self._root = root
        if not root.is_dir():
            raise UsageError(f"{root}: no such folder", "make a run: cachemark run quick")
        if rebuild:
            _remove(root)
        self._connection = self._open()

    def __enter__(self) -> RunIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rows(self, query: str, values: Sequence[object] = ()) -> Iterator[sqlite3.Row]:
        """The rows of a query."""
        yield from self._connection.execute(query, values)

    def _open(self) -> sqlite3.Connection:
        path = self._root / INDEX
        for remove in (False, True):
            if remove:
                _remove(self._root)
            try:
                return self._fresh(_connect(str(path)))
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
            _refresh(connection, self._root)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


def _remove(root: Path) -> None:
    for name in (INDEX, INDEX_JOURNAL):
        with contextlib.suppress(OSError):
            (root / name).unlink()


def _make(connection: sqlite3.Connection) -> None:
    """Create the tables of this version; drop all others."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        connection.execute(f'DROP TABLE "{name}"')
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)


def _refresh(connection: sqlite3.Connection, root: Path) -> None:
    known = dict(connection.execute("SELECT folder, stamp FROM run").fetchall())
    stamps = {name: stamp_of(root / name) for name in run_names(root)}
    for folder in known.keys() | stamps.keys():
        if known.get(folder) == stamps.get(folder):
            continue
        for table in ("run", "trial", "pool"):
            connection.execute(f"DELETE FROM {table} WHERE folder = ?", (folder,))
        if folder in stamps:
            _add(connection, root, folder, stamps[folder])


def stamp_of(folder: Path) -> str:
    """A value that changes with every file from which a run is read."""
    parts: list[str] = []
    for name in ("run.json", "outcomes.jsonl"):
        with contextlib.suppress(OSError):
            facts = (folder / name).stat()
            parts.append(f"{name}:{facts.st_size}:{facts.st_mtime_ns}")
    return " ".join(parts)


def _add(connection: sqlite3.Connection, root: Path, folder: str, stamp: str) -> None:
    try:
        _add_rows(connection, *index_rows(open_run(folder, root), stamp))
    except sqlite3.DatabaseError:
        raise
    except UsageError as error:
        _add_problem(connection, folder, stamp, error.text)
    except Exception as error:  # a run that does not fit together must not hide the others
        text = f"its contents do not fit together: {type(error).__name__}: {error}"
        _add_problem(connection, folder, stamp, text)


def _add_rows(
    connection: sqlite3.Connection,
    run: tuple[object, ...],
    trials: list[tuple[object, ...]],
    pools: list[tuple[object, ...]],
) -> None:
    _insert(connection, "trial", [*_TRIAL, *_FIGURES], trials)
    _insert(connection, "pool", _POOL, pools)
    _insert(connection, "run", _RUN, [run])


def _add_problem(connection: sqlite3.Connection, folder: str, stamp: str, problem: str) -> None:
    for table in ("trial", "pool"):
        connection.execute(f"DELETE FROM {table} WHERE folder = ?", (folder,))
    blank: dict[str, object] = dict.fromkeys(_RUN, "")
    row = blank | {"folder": folder, "stamp": stamp, "planned": 0, "problem": problem}
    _insert(connection, "run", _RUN, [tuple(row[name] for name in _RUN)])


def index_rows(
    run: Run, stamp: str
) -> tuple[tuple[object, ...], list[tuple[object, ...]], list[tuple[object, ...]]]:
    """The row of a run, those of its trials, and those of its percentiles. Raises UsageError."""
    folder, experiment = run.folder.name, run.header.experiment
    # Indexes of replays go on after those of the plan; so do those of a search, which has none.
    planned = None if experiment.until_valid is None else trial_count(experiment)
    # If two processes wrote, a trial may be there twice: the later one counts.
    outcomes = list({outcome.trial.index: outcome for outcome in run.outcomes()}.values())
    trials = [_trial_row(folder, outcome, planned) for outcome in outcomes]
    return _run_row(run, folder, stamp), trials, _pool_rows(folder, outcomes)


def _insert(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Sequence[tuple[object, ...]],
) -> None:
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _run_row(run: Run, folder: str, stamp: str) -> tuple[object, ...]:
    header, host = run.header, run.header.host
    machine = f"{host.cpu_model or 'unknown CPU'}, {len(host.usable_cpus)} CPUs"
    if header.hosts:  # another placement is another machine
        machine += f"; hosts: {placement_text(header.hosts)}"
    return (
        folder, stamp, header.created_at, header.experiment.name, header.cachemark, host.name,
        machine, header.experiment.margin_percent, trial_count(header.experiment), "",
    )  # fmt: skip


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
        server.version if server else "",
        *[_figure(outcome, figure) if valid else None for figure in FIGURES.values()],
    )  # fmt: skip


def _pool_rows(folder: str, outcomes: Sequence[Outcome]) -> list[tuple[object, ...]]:
    """A row for each percentile that the valid trials of a cell have together."""
    cells: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.verdict == "VALID" and outcome.measure is not None:
            key = (*msgspec.structs.astuple(outcome.trial.cell), fingerprint(outcome))
            cells.setdefault(key, []).append(outcome)
    return [
        (folder, *key, name, of.value, of.low, of.high, of.bounds)
        for key, trials in cells.items()
        for name in _POOLED
        if (of := over_trials(trials, FIGURES[name])) is not None
    ]


def _figure(outcome: Outcome, figure: Figure) -> float | str | None:
    return WITHHELD if withholds(outcome, figure) else figure.of(outcome)
