"""Runs of `cachemark resilience` on disk: a header, and the outcome of each cell as a JSON line.

An outcome is on disk before the next cell begins, so a stopped run can be continued.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cachemark import __version__
from cachemark.analysis.resilience.cell import (
    RESILIENCE_FORMAT,
    CellName,
    CellOutcome,
    ResilienceHeader,
    ResiliencePlan,
)
from cachemark.host.atomic_file import append_lines, replace_file
from cachemark.host.files import read_regular, refuse_linked
from cachemark.model.errors import UsageError, refusing
from cachemark.model.faults import chosen_faults
from cachemark.model.run_header import HostFacts
from cachemark.runs.storage.store import INDEX, Run, new_run_folder, open_run, run_names

_HEADER = "resilience.json"
_CELLS = "cells.jsonl"
# A cell takes ten seconds and more.
_MAX_CELLS = 100_000


class ResilienceRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run on disk."""

    folder: Path
    header: ResilienceHeader

    def outcomes(self) -> list[CellOutcome]:
        """The outcomes in the order in which the cells were played. Raises UsageError."""
        path = self.folder / _CELLS
        with refusing(f"{path}: cannot be read", decodes=True):
            lines = read_regular(path).splitlines(keepends=True) if os.path.lexists(path) else []
            # A killed process can leave an incomplete last line.
            return [
                msgspec.json.decode(line, type=CellOutcome) for line in lines if line[-1:] == b"\n"
            ]

    def left(self, done: Iterable[CellOutcome]) -> list[CellName]:
        """The cells without an outcome among these, in the order in which they are played."""
        ended = {outcome.name for outcome in done}
        return [cell for cell in self.header.plan.cells() if cell not in ended]

    def append(self, outcome: CellOutcome) -> None:
        """Add an outcome, which is on disk when this returns. Raises UsageError."""
        path = self.folder / _CELLS
        with refusing(f"{path}: cannot be written", "make room, then use --resume"):
            append_lines(path, msgspec.json.encode(outcome) + b"\n")


def check_plan(plan: ResiliencePlan, where: str) -> None:
    """Refuse faults that there are not, and more cells than can be played. Raises UsageError."""
    try:
        chosen_faults(plan.faults, quick=False)
    except UsageError as error:
        raise UsageError(f"{where}: {error.text}", error.remedy) from error
    rows = len(plan.clients) * len(plan.profiles) * len(plan.faults)
    if not 1 <= plan.sittings <= _MAX_CELLS // max(1, rows):
        raise UsageError(
            f"{where}: {plan.sittings:,} sittings of {rows:,} cells",
            f"at least one sitting, and at most {_MAX_CELLS:,} cells in all",
        )


def create_resilience_run(
    root: Path, plan: ResiliencePlan, host: HostFacts, name: str = ""
) -> ResilienceRun:
    """Create the folder and the header of a run. Raises UsageError."""
    with new_run_folder(root, "resilience") as (folder, created_at):
        header = ResilienceHeader(
            id=folder.name, created_at=created_at, cachemark=__version__, plan=plan, host=host,
            name=name,
        )  # fmt: skip
        replace_file(folder / _HEADER, msgspec.json.format(msgspec.json.encode(header)) + b"\n")
    return ResilienceRun(folder=folder, header=header)


def resilience_run_names(root: Path) -> list[str]:
    """The folder names of all runs of `resilience`, oldest first."""
    return run_names(root, _HEADER)


def open_resilience_run(name: str, root: Path) -> ResilienceRun:
    """Open a run by its id in `root`, or by its folder; empty: the latest. Raises UsageError."""
    known = resilience_run_names(root)
    folders = [root / name, Path(name)] if name else [root / latest for latest in known[-1:]]
    for folder in folders:
        path = folder / _HEADER
        with refusing(f"{path}: not a run of `resilience`", decodes=True):
            if not path.is_file():
                continue
            refuse_linked(folder)
            header = msgspec.json.decode(read_regular(path), type=ResilienceHeader)
        if header.format != RESILIENCE_FORMAT:
            raise UsageError(
                f"{path}: a run of format {header.format}, this reads {RESILIENCE_FORMAT}"
            )
        check_plan(header.plan, str(path))
        return ResilienceRun(folder=folder, header=header)
    hint = f"the latest is {known[-1]}" if known else f"{root} holds none"
    raise UsageError(f"no run of `resilience` {name!r}", hint)


class RunFolder(msgspec.Struct, frozen=True):
    """A folder of runs of both kinds."""

    root: Path

    @property
    def index(self) -> Path:
        """The file of its index."""
        return self.root / INDEX

    def names(self) -> list[str]:
        """The folder names of all runs of trials, oldest first."""
        return run_names(self.root)

    def open(self, name: str) -> Run:
        """A run of trials by its folder's name. Raises UsageError."""
        return open_run(name, self.root)

    def resilience_names(self) -> list[str]:
        """The folder names of all runs of `resilience`, oldest first."""
        return resilience_run_names(self.root)

    def open_resilience(self, name: str) -> ResilienceRun:
        """A run of `resilience` by its folder's name. Raises UsageError."""
        return open_resilience_run(name, self.root)
