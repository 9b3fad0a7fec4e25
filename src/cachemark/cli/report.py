"""`cachemark report`: print or export the report of a stored run."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachemark.cli import completers
from cachemark.cli.output import print_text, terminal_width, write_out, write_text, write_texts
from cachemark.host.atomic_file import write_files
from cachemark.host.files import is_folder
from cachemark.model.errors import UsageError
from cachemark.report.formats import (
    PLOT_SUFFIXES,
    SUMMARY_PICTURE,
    draw_plots,
    draw_summary,
    format_names,
    render_files,
)
from cachemark.runs.storage.store import Run, latest_run, open_run

_MIN_PIXELS, _MAX_PIXELS = 200, 8000


@dataclass(frozen=True)
class PictureOptions:
    """Settings of pictures."""

    title: Annotated[
        str, Parameter(help="pictures: a title of your own, instead of the run's question")
    ] = ""
    size: Annotated[
        str | None, Parameter(help="--format picture: width and height in pixels, such as 1600x900")
    ] = None
    theme: Annotated[Literal["light", "dark"], Parameter(help="pictures: background")] = "light"


def report(
    run: Annotated[
        str | None,
        Parameter(completer=completers.runs, help="a run's id or folder; default: the latest"),
    ] = None,
    *,
    form: Annotated[str, Parameter(name="--format", choices=format_names())] = "table",
    out: Annotated[
        Path | None,
        Parameter(help="write to this file; a folder if the format has several files, such as svg"),
    ] = None,
    picture: Annotated[PictureOptions | None, Parameter(name="*")] = None,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Print the report of a run, export it for other programs, or draw its plots."""
    style = picture or PictureOptions()
    if style != PictureOptions() and form not in (*PLOT_SUFFIXES, SUMMARY_PICTURE):
        raise UsageError(
            f"--format {form} is no picture",
            f"pictures: {SUMMARY_PICTURE}, {', '.join(PLOT_SUFFIXES)}",
        )
    stored_run = open_run(run, runs) if run else latest_run(runs)
    if form in PLOT_SUFFIXES:
        _draw(form, stored_run, out, style)
        return
    if form == SUMMARY_PICTURE:
        _picture(stored_run, out, style)
        return
    files = render_files(form, stored_run, terminal_width() if out is None else None)
    if not files:
        raise UsageError(f"{stored_run.id} has nothing for --format {form}: no trial is valid")
    if out is None:
        _print(form, files)
    else:
        _write(files, out)


def _draw(form: str, run: Run, out: Path | None, style: PictureOptions) -> None:
    if out is None:
        raise UsageError(
            f"--format {form} writes one file for each plot", "name a folder: --out FOLDER"
        )
    if style.size is not None:
        raise UsageError("--size is for --format picture", "leave it out for plots in files")
    plots = draw_plots(form, run, style.title, style.theme)
    if not plots:
        print_text("no plot: nothing was measured")
        return
    try:
        write_files(out, plots)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error}") from error
    print_text(f"{len(plots)} plots in {out}")


def _picture(run: Run, out: Path | None, style: PictureOptions) -> None:
    if out is None:
        raise UsageError(
            f"--format {SUMMARY_PICTURE} writes a PNG file", "name the file: --out FILE.png"
        )
    size = _parse_size(style.size) if style.size is not None else None
    content = draw_summary(run, style.title, style.theme, size)
    if not content:
        searched = bool(run.header.experiment.search)
        why = "a search has its answer in words" if searched else "nothing was measured"
        remedy = "its tables: --format html, markdown or table" if searched else ""
        raise UsageError(f"{run.id} has nothing for --format {SUMMARY_PICTURE}: {why}", remedy)
    write_out(out, content)
    print_text(f"{out}: {len(content) / 1e3:.0f} kB")


def _parse_size(text: str) -> tuple[int, int]:
    """Such as 1600x900. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    size = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(_MIN_PIXELS <= pixels <= _MAX_PIXELS for pixels in size):
        raise UsageError(
            f"--size {text}: not a size from {_MIN_PIXELS} to {_MAX_PIXELS} pixels each way",
            "such as --size 1600x900",
        )
    return size


def _print(form: str, made: dict[str, str]) -> None:
    if len(made) > 1:
        raise UsageError(f"--format {form} writes {len(made)} files", "name a folder: --out FOLDER")
    (text,) = made.values()
    print_text(text)


def _write(made: dict[str, str], out: Path) -> None:
    if len(made) == 1 and not is_folder(out):
        write_text(next(iter(made.values())), out)
    else:
        write_texts(made, out)
