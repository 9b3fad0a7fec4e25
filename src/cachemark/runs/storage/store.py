"""Runs on disk: a folder for each run, with its header, its outcomes (JSON lines), its reports.

Each outcome is on disk before the next trial begins. A killed process can leave an incomplete last
line, which is dropped. Nothing else is ever rewritten. A file of JSON lines beside the runs has
calibrations.
"""

import contextlib
import datetime
import fcntl
import itertools
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from cachemark import __version__
from cachemark.endpoints.clients import default_settings
from cachemark.host.atomic_file import append_lines, made_folder, replace_file
from cachemark.host.files import open_regular, read_regular, refuse_linked
from cachemark.model.audit import Audit
from cachemark.model.calibration import Calibration
from cachemark.model.errors import DECODE_ERRORS, UsageError, refusing
from cachemark.model.experiment import Experiment
from cachemark.model.foreign_text import in_a_sentence
from cachemark.model.outcome import Outcome, from_line, to_line
from cachemark.model.run_header import RUN_FORMAT, HostFacts, HostsOfRun, RunHeader

_LOCK = "lock"
_HEADER = "run.json"
_OUTCOMES = "outcomes.jsonl"
_AUDIT = "audit.json"
# The id of a run: the name of its folder, and of files that are made of it.
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# The store's own files, beside the folders of the runs. No run may be called like one of them.
CALIBRATIONS = "calibrations.jsonl"
INDEX = "index.sqlite"
INDEX_JOURNAL = f"{INDEX}-journal"
OWN_FILES = (CALIBRATIONS, INDEX, INDEX_JOURNAL)
# A file in the folder of an imported run, whose commands come from another user.
IMPORTED = "imported.json"
# An outcome has a few histograms of some kB each.
_LONGEST_LINE_BYTES = 64 * 2**20
_SHOWN_CHARACTERS = 200


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

    @property
    def imported(self) -> bool:
        """Whether the run was made elsewhere."""
        return os.path.lexists(self.folder / IMPORTED)

    def __enter__(self) -> "Run":
        self._lock = lock_run(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def audit(self) -> Audit | None:
        """The audit before the first trial; None if there was none. Raises UsageError."""
        path = self.folder / _AUDIT
        with refusing(f"{path}: cannot be read", decodes=True):
            with contextlib.suppress(FileNotFoundError):
                return msgspec.json.decode(read_regular(path), type=Audit)
            return None

    def store_audit(self, audit: Audit) -> None:
        """Write the audit, completely or not at all. Needs the lock."""
        path = self.folder / _AUDIT
        text = msgspec.json.format(msgspec.json.encode(audit)) + b"\n"
        with refusing(f"{path}: cannot be written"):
            replace_file(path, text)

    def store_experiment(self, experiment: Experiment) -> None:
        """Write another experiment into the header. Needs the lock. Raises UsageError."""
        header = msgspec.structs.replace(self.header, experiment=experiment)
        with refusing(f"{self.folder}: cannot be written"):
            _write_header(self.folder, header)
        self.header = header

    def append(self, outcomes: Sequence[Outcome]) -> None:
        """Append outcomes, which are on disk when this returns. Needs the lock."""
        if self._lock is None:
            raise RuntimeError("a run must be entered before it is written to")
        path = self.folder / _OUTCOMES
        with refusing(f"{path}: cannot be written", "make room, then run with --resume"):
            append_lines(path, b"".join(map(to_line, outcomes)))

    def outcomes(self) -> list[Outcome]:
        """All outcomes, in the order in which the trials ended. Raises UsageError."""
        path = self.folder / _OUTCOMES
        try:
            with open_regular(path) as file:
                return list(_read_outcomes(file, path))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error

    def calibrations(self) -> list[Calibration]:
        """The calibrations beside the run, oldest first. Raises UsageError."""
        return load_calibrations(self.folder.parent)

    def own_settings(self) -> dict[str, str]:
        """How the own settings of each library differ, by client id; empty without workers here."""
        return default_settings()

    def done(self) -> set[int]:
        """The indexes of the trials that have ended."""
        return {outcome.trial.index for outcome in self.outcomes()}


def _read_outcomes(file: IO[bytes], path: Path) -> Iterator[Outcome]:
    """The outcome of each line. Reads line by line, so that the first bad line ends it."""
    for number in itertools.count(1):
        line = file.readline(_LONGEST_LINE_BYTES)
        if not line.endswith(b"\n") and len(line) < _LONGEST_LINE_BYTES:
            return  # the text after the last newline is incomplete, or empty
        try:
            yield from_line(line)
        except DECODE_ERRORS as error:
            raise UsageError(
                f"{path}:{number}: not an outcome: {error}",
                "the file was changed by hand: remove the line, or run again",
            ) from error


def create_run(
    root: Path,
    experiment: Experiment,
    *,
    host: HostFacts,
    command: str,
    hosts: HostsOfRun | None = None,
    name: str = "",
) -> Run:
    """Create the folder and the header of a run. Raises UsageError."""
    with new_run_folder(root, experiment.name) as (folder, created_at):
        header = RunHeader(
            id=folder.name,
            created_at=created_at,
            cachemark=__version__,
            command=command,
            experiment=experiment,
            host=host,
            hosts=hosts,
            name=name,
        )
        _write_header(folder, header)
    return Run(folder, header)


def _write_header(folder: Path, header: RunHeader) -> None:
    replace_file(folder / _HEADER, msgspec.json.format(msgspec.json.encode(header)) + b"\n")


@contextmanager
def new_run_folder(root: Path, name: str) -> Generator[tuple[Path, str]]:
    """The folder of a new run, whose id ends in `name`, and the time of its start.

    The folder goes if the header cannot be written into it. Raises UsageError.
    """
    now = datetime.datetime.now(datetime.UTC)
    with refusing(f"{root}: cannot be written", "choose another --runs"), made_folder(root):
        folder = _free_folder(root, f"{now:%Y-%m-%dT%H-%M-%S}-{name}")
        try:
            yield folder, now.isoformat(timespec="seconds")
        except BaseException:
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise


def _free_folder(root: Path, stem: str) -> Path:
    """The first name that no run has; two processes may begin in the same second."""
    for number in range(1, 1000):
        folder = root / (stem if number == 1 else f"{stem}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise UsageError(f"{root}: too many runs named {stem}", "choose another --runs")


def open_run(name: str, root: Path) -> Run:
    """Open a run by its id in `root`, or by its folder. Raises UsageError."""
    for folder in (root / name, Path(name)):
        if os.path.lexists(folder / _HEADER):  # what `run_names` lists
            return Run(folder, _read_header(folder))
    known = run_names(root)
    hint = f"the latest is {known[-1]}" if known else f"{root} holds no run"
    shown = name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…"
    raise UsageError(f"no run {shown!r}", hint)


def latest_run(root: Path) -> Run:
    """Open the latest run. Raises UsageError if there is none."""
    names = run_names(root)
    if not names:
        raise UsageError(f"{root} holds no run", "make one: cachemark run quick")
    return open_run(names[-1], root)


def latest_own_run(root: Path) -> Run:
    """Open the latest run that was not imported. Raises UsageError if there is none."""
    own = [name for name in run_names(root) if not os.path.lexists(root / name / IMPORTED)]
    if not own:
        raise UsageError(
            f"{root} holds no run of this machine",
            "an imported run is continued if it is named: cachemark run --resume ID",
        )
    return open_run(own[-1], root)


def run_names(root: Path, header: str = _HEADER) -> list[str]:
    """The folder names of all runs that have such a header, oldest first."""
    with contextlib.suppress(OSError):
        found = (path.parent for path in root.glob(f"*/{header}") if _is_text(path))
        return sorted(folder.name for folder in found if not folder.is_symlink())
    return []


def _is_text(path: Path) -> bool:
    """Whether a name can be shown and stored: on disk, it may be any bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_header(folder: Path) -> RunHeader:
    path = folder / _HEADER
    with refusing(f"{path}: not a run", decodes=True):
        refuse_linked(folder)
        header = msgspec.json.decode(read_regular(path), type=RunHeader)
    if header.format != RUN_FORMAT:
        raise UsageError(
            f"{path}: a run of format {header.format}, this cachemark reads {RUN_FORMAT}",
            f"read it with cachemark {in_a_sentence(header.cachemark)}",
        )
    if not RUN_ID.fullmatch(header.id):
        raise UsageError(f"{path}: {header.id!r} is no run's id", "the file was changed by hand")
    return header


def lock_run(folder: Path) -> int:
    """Lock the run in a folder until the returned file is closed, or this process ends.

    Raises UsageError if another process plays it.
    """
    with refusing(f"{folder}: cannot be written"):
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UsageError(
            f"{folder}: another process is running it", "wait for it, or stop it"
        ) from error
    return lock


def append_calibration(root: Path, calibration: Calibration) -> Path:
    """Append a calibration, which is on disk when this returns. Raises UsageError."""
    path = root / CALIBRATIONS
    with refusing(f"{path}: cannot be written", "choose another --runs"), made_folder(root):
        append_lines(path, msgspec.json.encode(calibration) + b"\n")
    return path


def load_calibrations(root: Path) -> list[Calibration]:
    """All calibrations, oldest first, without an incomplete last line. Raises UsageError."""
    path = root / CALIBRATIONS
    lines: list[bytes] = []
    with refusing(f"{path}: cannot be read"), contextlib.suppress(FileNotFoundError):
        lines = read_regular(path).split(b"\n")[:-1]
    calibrations: list[Calibration] = []
    for number, line in enumerate(lines, 1):
        with refusing(f"{path}:{number}: not a calibration", decodes=True):
            calibrations.append(msgspec.json.decode(line, type=Calibration))
    return calibrations
