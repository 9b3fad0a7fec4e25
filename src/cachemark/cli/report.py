"""`cachemark report`: a run that is kept, in one of several forms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.errors import UsageError
from cachemark.report import PICTURES, RENDERERS, draw, render
from cachemark.store import Run, latest, open_run

_FORMS = ", ".join([*RENDERERS, *PICTURES])


def report(
    run: Annotated[str | None, Parameter(help="a run's id or folder; the latest if none")] = None,
    *,
    form: Annotated[str, Parameter(name="--format", help=_FORMS)] = "table",
    out: Annotated[
        Path | None, Parameter(help="write into this file; a folder for svg, png and vega-lite")
    ] = None,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Print the report of a run, or write it into a file, or draw its plots into a folder."""
    if form not in RENDERERS and form not in PICTURES:
        raise UsageError(f"--format {form}: no such form", f"forms: {_FORMS}")
    found = open_run(run, runs) if run else latest(runs)
    if form in PICTURES:
        _draw(form, found, out)
    else:
        _write(render(form, found, Console().width if out is None else None), out)


def _draw(form: str, run: Run, out: Path | None) -> None:
    if out is None:
        raise UsageError(f"--format {form}: a file for each plot", "say where: --out FOLDER")
    written = draw(form, run, out)
    print(f"{len(written)} plots in {out}" if written else "nothing was measured, so no plot")


def _write(text: str, out: Path | None) -> None:
    text = text if text.endswith("\n") else text + "\n"
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written: {error}") from error
