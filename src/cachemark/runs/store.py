"""Runs on disk: a folder for each run, with its header, its outcomes (JSON lines), its reports.

Each outcome is on disk before the next trial begins. A killed process can leave an incomplete last
line, which is dropped. Nothing else is ever rewritten.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
from pathlib import Path

import msgspec

from cachemark import __version__
from cachemark.host import HostFacts
from cachemark.model.errors import DECODE_ERRORS, UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome, from_line, to_line
from cachemark.runs.audit.value import Audit

RUN_FORMAT = 1
_HEADER = "run.json"
_OUTCOMES = "outcomes.jsonl"
_AUDIT = "audit.json"
_LOCK = "lock"


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a run, written once, when the run is created."""

    format: int = RUN_FORMAT
    id: str
    created_at: str
    cachemark: str
    command: str
    experiment: Experiment
    host: HostFacts


class Run:
    """A run on disk. As a context manager, it locks the run for this process."""

    def __init__(self, folder: Path, header: RunHeader) -> None:
        self.folder = folder
        self.header = header
        self._lock: int | None = None

    @property
    def id(self) -> str:
        """The name of the run and of its folder."""
        return self.header.id

    def __enter__(self) -> Run:
        try:
            lock = os.open(self.folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise UsageError(f"{self.folder}: cannot be written: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise UsageError(
                f"{self.folder}: another process is running it", "wait for it, or stop it"
            ) from error
        self._lock = lock
        self._drop_torn_line()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def audit(self) -> Audit | None:
        """The audit before the first trial; None if there was none. Raises UsageError."""
        path = self.folder / _AUDIT
        try:
            return msgspec.json.decode(path.read_bytes(), type=Audit)
        except FileNotFoundError:
            return None
        except (OSError, *DECODE_ERRORS) as error:
            raise UsageError(f"{path}: cannot be read: {error}") from error

    def store_audit(self, audit: Audit) -> None:
        """Write the audit, completely or not at all. Needs the lock."""
        path = self.folder / _AUDIT
        text = msgspec.json.format(msgspec.json.encode(audit)) + b"\n"
        try:
            path.with_suffix(".new").write_bytes(text)
            path.with_suffix(".new").replace(path)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error}") from error

    def append(self, outcome: Outcome) -> None:
        """Append an outcome, which is on disk when this returns. Needs the lock."""
        if self._lock is None:
            raise RuntimeError("a run must be entered before it is written to")
        path = self.folder / _OUTCOMES
        try:
            # Buffered: a raw write may write a part only, and its return value alone says so.
            with path.open("ab") as file:
                file.write(to_line(outcome))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be written: {error}", "make room, then run with --resume"
            ) from error

    def outcomes(self) -> list[Outcome]:
        """All outcomes, in the order in which the trials ended. Raises UsageError."""
        path = self.folder / _OUTCOMES
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")
        outcomes: list[Outcome] = []
        # What follows the last newline is incomplete, or empty.
        for number, line in enumerate(lines[:-1], 1):
            try:
                outcomes.append(from_line(line))
            except DECODE_ERRORS as error:
                raise UsageError(
                    f"{path}:{number}: not an outcome: {error}",
                    "the file was changed by hand; take the line out, or the run anew",
                ) from error
        return outcomes

    def done(self) -> set[int]:
        """The indexes of the trials that have ended."""
        return {outcome.trial.index for outcome in self.outcomes()}

    def _drop_torn_line(self) -> None:
        path = self.folder / _OUTCOMES
        if path.exists():
            whole = path.read_bytes().rfind(b"\n") + 1
            os.truncate(path, whole)


def create_run(root: Path, experiment: Experiment, *, host: HostFacts, command: str) -> Run:
    """Create the folder and the header of a run. Raises UsageError."""
    now = datetime.datetime.now(datetime.UTC)
    stem = f"{now:%Y-%m-%dT%H-%M-%S}-{experiment.name}"
    folder, name = _new_folder(root, stem)
    header = RunHeader(
        id=name,
        created_at=now.isoformat(timespec="seconds"),
        cachemark=__version__,
        command=command,
        experiment=experiment,
        host=host,
    )
    text = msgspec.json.format(msgspec.json.encode(header))
    (folder / _HEADER).write_bytes(text + b"\n")
    return Run(folder, header)


def _new_folder(root: Path, stem: str) -> tuple[Path, str]:
    for number in range(1, 1000):
        name = stem if number == 1 else f"{stem}-{number}"
        try:
            (root / name).mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(
                f"{root}: cannot be written: {error}", "choose another --runs"
            ) from error
        return root / name, name
    raise UsageError(f"{root}: too many runs named {stem}", "choose another --runs")


def open_run(name: str, root: Path) -> Run:
    """Open a run by its id in `root`, or by its folder. Raises UsageError."""
    for folder in (root / name, Path(name)):
        if (folder / _HEADER).is_file():
            return Run(folder, _read_header(folder / _HEADER))
    known = [run.name for run in _folders(root)]
    hint = f"the latest is {known[-1]}" if known else f"{root} holds no run"
    raise UsageError(f"no run {name!r}", hint)


def latest_run(root: Path) -> Run:
    """Open the latest run. Raises UsageError if there is none."""
    folders = _folders(root)
    if not folders:
        raise UsageError(f"{root} holds no run", "make one: cachemark run quick")
    return open_run(folders[-1].name, root)


def run_names(root: Path) -> list[str]:
    """The folder names of all runs, oldest first."""
    return [folder.name for folder in _folders(root)]


def _folders(root: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path.parent for path in root.glob(f"*/{_HEADER}"))
    return []


def _read_header(path: Path) -> RunHeader:
    try:
        header = msgspec.json.decode(path.read_bytes(), type=RunHeader)
    except (OSError, *DECODE_ERRORS) as error:
        raise UsageError(f"{path}: not a run: {error}") from error
    if header.format != RUN_FORMAT:
        raise UsageError(
            f"{path}: a run of format {header.format}, this cachemark reads {RUN_FORMAT}",
            f"read it with cachemark {header.cachemark}",
        )
    return header
