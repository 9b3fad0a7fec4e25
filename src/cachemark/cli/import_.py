"""`cachemark import`: import a run that was exported elsewhere."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.analysis.number_format import count_of
from cachemark.cli.output import print_text
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.formats import RENDERERS, load_report
from cachemark.report.history.index import index_rows
from cachemark.report.plots import plots
from cachemark.report.series import build_exported_run
from cachemark.runs.storage.archive import check_contents, import_run
from cachemark.runs.storage.store import Run

_WIDTH = 120
_PLOT_WIDTH = 520


def import_(
    file: Annotated[Path, Parameter(help="a file that `cachemark export` wrote")],
    /,
    *,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Check the checksums and all contents of an exported run, then import it."""
    run, new = import_run(file, runs, rehearse)
    trials = f"{count_of(len(run.outcomes()), 'trial')} in {run.folder}"
    print_text(f"{run.id}: {trials}" if new else f"{run.id}: already exists, {trials}")


def rehearse(run: Run) -> None:
    """Check a run, then make its row of the index, its report in all forms, and its exports.

    Plots are made, but not drawn. Raises the first error of these steps.
    """
    check_contents(run)
    index_rows(run, "")
    report = load_report(run)
    for form in ("table", "markdown", "csv", "json"):
        RENDERERS[form](report, _WIDTH)
    plots(report, _PLOT_WIDTH)
    exported = build_exported_run(run.header, run.outcomes())
    for render_export in EXPORTS.values():
        render_export(exported)
