"""Reports: one value, built once; one renderer = one file."""

from __future__ import annotations

from collections.abc import Callable

from cachemark.report import csv_file, json_file, markdown, terminal
from cachemark.report.build import build
from cachemark.report.value import Report
from cachemark.store import Run

RENDERERS: dict[str, Callable[[Report, int | None], str]] = {
    "table": terminal.render,
    "markdown": markdown.render,
    "csv": csv_file.render,
    "json": json_file.render,
}


def render(form: str, run: Run, width: int | None) -> str:
    """A run's report in one of the forms of RENDERERS, `width` columns wide where that matters."""
    return RENDERERS[form](build(run.header, run.outcomes()), width)
