"""Reports: one value, built once, and one file for each renderer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cachemark.model.errors import UsageError
from cachemark.report import csv_file, markdown, terminal
from cachemark.report.answers import sentence
from cachemark.report.build import build
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.json_text import render_json
from cachemark.report.series import source
from cachemark.report.value import Report
from cachemark.runs.calibrate.calibration_store import kept
from cachemark.runs.store import Run


def _html(report: Report, width: int | None) -> str:
    # Late, as templates take a while to load and other forms do without.
    from cachemark.report import html  # noqa: PLC0415

    return html.render(report, width)


RENDERERS: dict[str, Callable[[Report, int | None], str]] = {
    "table": terminal.render,
    "markdown": markdown.render,
    "csv": csv_file.render,
    "json": render_json,
    "html": _html,
}
# One file for the whole run, as a README shows it; then a file for each plot: its name ends so.
PICTURE = "picture"
PICTURES = {"svg": ".svg", "png": ".png", "vega-lite": ".vl.json"}
# What a form's file is called, where that is not its own name.
_SUFFIXES = {"table": "txt", "markdown": "md"}


def forms() -> list[str]:
    """The names of all formats: reports, then plots, then exports for other programs."""
    return [*RENDERERS, *PICTURES, PICTURE, *EXPORTS]


def files(form: str, run: Run, width: int | None) -> dict[str, str]:
    """A run in one of the formats of RENDERERS or EXPORTS, as file name → text."""
    if form in EXPORTS:
        return EXPORTS[form](source(run.header, run.outcomes()))
    return {f"report.{_SUFFIXES.get(form, form)}": render(form, run, width)}


def built(run: Run) -> Report:
    """A run's report as a value, before it is rendered."""
    return build(run.header, run.outcomes(), run.audit(), kept(run.folder.parent))


def render(form: str, run: Run, width: int | None) -> str:
    """A run's report in one of the formats of RENDERERS; some use `width`, in columns."""
    return RENDERERS[form](built(run), width)


def sum_up(run: Run) -> bytes:
    """A run as one PNG picture; empty if nothing was measured. Raises UsageError."""
    from cachemark.report.plots import summary  # noqa: PLC0415

    report = built(run)
    return summary(report, sentence(report))


def draw(form: str, run: Run, folder: Path) -> list[Path]:
    """Write a run's plots to a folder, in one of the formats of PICTURES. Raises UsageError."""
    from cachemark.report.plots import files  # noqa: PLC0415

    written: list[Path] = []
    for name, content in files(built(run), form):
        path = folder / f"{name}{PICTURES[form]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error}") from error
        written.append(path)
    return written
