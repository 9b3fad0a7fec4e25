"""Runs on disk, as reports need them; `runs` has them, and is above this room."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cachemark.analysis.resilience.cell import CellOutcome, ResilienceHeader
from cachemark.model.audit import Audit
from cachemark.model.calibration import Calibration
from cachemark.model.outcome import Outcome
from cachemark.model.run_header import RunHeader


class InFolder(Protocol):
    """A value with a folder of its own."""

    @property
    def folder(self) -> Path: ...


class StoredRun(InFolder, Protocol):
    """A run. All of its methods raise UsageError for a file that cannot be read."""

    @property
    def header(self) -> RunHeader: ...

    def outcomes(self) -> list[Outcome]: ...

    def audit(self) -> Audit | None: ...

    def calibrations(self) -> Sequence[Calibration]:
        """The calibrations beside the run."""
        ...

    def own_settings(self) -> dict[str, str]:
        """How the own settings of each library differ, by client id."""
        ...


class StoredResilienceRun(InFolder, Protocol):
    """A run of `resilience`."""

    @property
    def header(self) -> ResilienceHeader: ...

    def outcomes(self) -> list[CellOutcome]: ...


class StoredRuns(Protocol):
    """A folder of runs, and the file of its index. To open a run raises UsageError."""

    @property
    def root(self) -> Path: ...

    @property
    def index(self) -> Path: ...

    def names(self) -> list[str]: ...

    def open(self, name: str) -> StoredRun: ...

    def resilience_names(self) -> list[str]: ...

    def open_resilience(self, name: str) -> StoredResilienceRun: ...
