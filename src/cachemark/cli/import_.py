"""`cachemark import`: import a run that was exported elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import print_text
from cachemark.report.rehearsal import rehearse
from cachemark.runs.storage.archive import import_run


def import_(
    file: Annotated[Path, Parameter(help="a file that `cachemark export` wrote")],
    /,
    *,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Import an exported run, after its checksums and all of its contents were checked."""
    run, new = import_run(file, runs, rehearse)
    trials = f"{len(run.outcomes())} trials in {run.folder}"
    print_text(f"{run.id}: {trials}" if new else f"{run.id}: already exists, {trials}")
