"""`cachemark report`: print or export the report of a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import print_text, terminal_width, write_out, write_text
from cachemark.model.errors import UsageError
from cachemark.report.formats import (
    PLOT_SUFFIXES,
    SUMMARY_PICTURE,
    draw_summary,
    format_names,
    render_files,
    write_plots,
)
from cachemark.runs.store import Run, latest_run, open_run

_FORMS = ", ".join(format_names())


def report(
    run: Annotated[str | None, Parameter(help="a run's id or folder; default: the latest")] = None,
    *,
    form: Annotated[str, Parameter(name="--format", help=_FORMS)] = "table",
    out: Annotated[
        Path | None,
        Parameter(help="write to this file; a folder if the format has several files, such as svg"),
    ] = None,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Print the report of a run, export it for other programs, or draw its plots."""
    if form not in format_names():
        raise UsageError(f"--format {form}: no such format", f"formats: {_FORMS}")
    found = open_run(run, runs) if run else latest_run(runs)
    if form in PLOT_SUFFIXES:
        _draw(form, found, out)
        return
    if form == SUMMARY_PICTURE:
        _picture(found, out)
        return
    made = render_files(form, found, terminal_width() if out is None else None)
    if not made:
        raise UsageError(f"{found.id} has nothing for --format {form}: no trial is valid")
    if out is None:
        _print(form, made)
    else:
        _write(made, out)


def _draw(form: str, run: Run, out: Path | None) -> None:
    if out is None:
        raise UsageError(
            f"--format {form} writes one file for each plot", "name a folder: --out FOLDER"
        )
    written = write_plots(form, run, out)
    print_text(f"{len(written)} plots in {out}" if written else "no plot: nothing was measured")


def _picture(run: Run, out: Path | None) -> None:
    if out is None:
        raise UsageError(
            f"--format {SUMMARY_PICTURE} writes a PNG file", "name the file: --out FILE.png"
        )
    content = draw_summary(run)
    if not content:
        raise UsageError(
            f"{run.id} has nothing for --format {SUMMARY_PICTURE}: nothing was measured"
        )
    write_out(out, content)
    print_text(f"{out}: {len(content) / 1e3:.0f} kB")


def _print(form: str, made: dict[str, str]) -> None:
    if len(made) > 1:
        raise UsageError(f"--format {form} writes {len(made)} files", "name a folder: --out FOLDER")
    (text,) = made.values()
    print_text(text)


def _write(made: dict[str, str], out: Path) -> None:
    alone = len(made) == 1 and not out.is_dir()
    for name, text in made.items():
        write_text(text, out if alone else out / name)
