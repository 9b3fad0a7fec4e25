"""Everything that is done with a stored run, done once: for a run that comes from somebody else."""

from __future__ import annotations

from cachemark.report import csv_file, markdown, terminal
from cachemark.report.exports.registry import EXPORTS
from cachemark.report.formats import load_report
from cachemark.report.history.index import index_rows
from cachemark.report.json_text import render_json
from cachemark.report.plots import plots
from cachemark.report.series import build_exported_run
from cachemark.runs.storage.archive import check_contents
from cachemark.runs.storage.store import Run

_WIDTH = 120
_PLOT_WIDTH = 520


def rehearse(run: Run) -> None:
    """Check a run, then make its row of the index, its report in all forms, and its exports.

    Plots are made, but not drawn. Raises the first error of these steps.
    """
    check_contents(run)
    index_rows(run, "")
    report = load_report(run)
    for render in (terminal.render, markdown.render, csv_file.render, render_json):
        render(report, _WIDTH)
    plots(report, _PLOT_WIDTH)
    exported = build_exported_run(run.header, run.outcomes())
    for render_export in EXPORTS.values():
        render_export(exported)
