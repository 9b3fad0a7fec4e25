"""Every format of a run: reports, plots, and exports for other programs."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from cachemark.model.errors import TrialError, UsageError
from cachemark.model.foreign_text import clean
from cachemark.report import answers, csv_file
from cachemark.report.build import build
from cachemark.report.conclusions import one_sentence
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.forms import forms
from cachemark.report.json_text import versioned
from cachemark.report.model import SCHEMA, Report
from cachemark.report.plots.palette import Theme
from cachemark.report.series import build_exported_run
from cachemark.report.stored_run import InFolder, StoredRun
from cachemark.report.tables import document


def _html(report: Report, width: int | None) -> str:
    # Late, as templates take a while to load and other forms do without.
    from cachemark.report import html  # noqa: PLC0415

    return html.render(report, width)


RENDERERS: dict[str, Callable[[Report, int | None], str]] = {
    **forms(document, {"csv": csv_file.render, "json": versioned(SCHEMA)}, name="report"),
    "answers": answers.render,
    "html": _html,
}
Size = tuple[int, int] | None
# One file for the whole run, as a README shows it; then a file for each plot: its name ends so.
SUMMARY_PICTURE = "picture"
PLOT_SUFFIXES = {"svg": ".svg", "png": ".png", "vega-lite": ".vl.json"}
# The ending of a form's file, where that is not its own name.
_SUFFIXES = {"table": "txt", "markdown": "md"}


def format_names() -> list[str]:
    """The names of all formats: reports, then plots, then exports for other programs."""
    return [*RENDERERS, *PLOT_SUFFIXES, SUMMARY_PICTURE, *EXPORTS]


def render_files(form: str, run: StoredRun, width: int | None) -> dict[str, str]:
    """A run in one of the formats of RENDERERS or EXPORTS, as file name → text."""
    if form in EXPORTS:
        outcomes = run.outcomes()
        with fits_together(run):
            files = EXPORTS[form](build_exported_run(run.header, outcomes))
        return {name: clean(text) for name, text in files.items()}
    return {f"report.{_SUFFIXES.get(form, form)}": render(form, run, width)}


def load_report(run: StoredRun) -> Report:
    """A run's report as a value, before it is rendered."""
    outcomes, audit = run.outcomes(), run.audit()
    with fits_together(run):
        return build(run.header, outcomes, audit, run.calibrations(), run.own_settings())


@contextmanager
def fits_together(run: InFolder) -> Generator[None]:
    """Raise UsageError if figures and names have the right types but contradict each other."""
    try:
        yield
    except (UsageError, TrialError, OSError, MemoryError):
        raise
    except Exception as error:  # a contradiction can fail anywhere
        raise UsageError(
            f"{run.folder}: its contents do not fit together: {type(error).__name__}: {error}",
            "the run was changed, or imported: cachemark writes no such run",
        ) from error


def render(form: str, run: StoredRun, width: int | None) -> str:
    """A run's report in one of the formats of RENDERERS; some use `width`, in columns."""
    report = load_report(run)
    # A command finds a run by its id in the usual folder, and anywhere by its own folder.
    usual = run.folder == Path("results", run.folder.name)
    with fits_together(run):
        if form == "answers":
            return answers.render(report, width, "" if usual else str(run.folder))
        return RENDERERS[form](report, width)


def draw_summary(
    run: StoredRun, title: str = "", theme: Theme = "light", size: Size = None
) -> bytes:
    """A run as one PNG picture; empty if nothing was measured. Raises UsageError."""
    from cachemark.report.plots import Style, summary_png  # noqa: PLC0415

    report = load_report(run)
    style = Style(title=title, theme=theme, size=size)
    with fits_together(run):
        return summary_png(report, one_sentence(report), style)


def draw_plots(
    form: str, run: StoredRun, title: str = "", theme: Theme = "light"
) -> dict[str, bytes | str]:
    """A run's plots in one of the formats of PLOT_SUFFIXES, by file name. Raises UsageError."""
    from cachemark.report.plots import Style, plot_files  # noqa: PLC0415

    report = load_report(run)
    with fits_together(run):
        drawn = list(plot_files(report, form, Style(title=title, theme=theme)))
    return {f"{name}{PLOT_SUFFIXES[form]}": content for name, content in drawn}
