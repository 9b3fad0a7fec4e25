"""`cachemark export`: write a run to one file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.analysis.number_format import count_of
from cachemark.cli import completers
from cachemark.cli.output import print_sentences
from cachemark.runs.storage.archive import export_run
from cachemark.runs.storage.store import open_run


def export(
    run: Annotated[str, Parameter(completer=completers.runs, help="a run's id or folder")],
    file: Annotated[Path, Parameter(help="a folder, or a file that does not exist yet")],
    /,
    *,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Write a run to one file, with checksums, for `cachemark import` on another machine."""
    stored_run = open_run(run, runs)
    written = export_run(stored_run, file)
    print_sentences(
        f"{stored_run.id}: {count_of(len(stored_run.outcomes()), 'trial')} in {written}"
    )
