"""`cachemark report`: the table of a run that is kept, in one of several forms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.errors import UsageError
from cachemark.report import RENDERERS, render
from cachemark.store import latest, open_run


def report(
    run: Annotated[str | None, Parameter(help="a run's id or folder; the latest if none")] = None,
    *,
    form: Annotated[str, Parameter(name="--format", help="table, markdown, csv or json")] = "table",
    out: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
    to: Annotated[Path | None, Parameter(help="write into this file")] = None,
) -> None:
    """Print the report of a run."""
    if form not in RENDERERS:
        raise UsageError(f"--format {form}: no such form", f"forms: {', '.join(RENDERERS)}")
    found = open_run(run, out) if run else latest(out)
    text = render(form, found, Console().width if to is None else None)
    if to is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--to {to}: cannot be written: {error}") from error
