"""Comparison of stored runs: two sides of runs, or the parts of one run."""

from collections.abc import Sequence

from cachemark.model.errors import UsageError
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.selection import CellFilter
from cachemark.report.compare.two_cells import compare_cells
from cachemark.report.compare.two_runs import Side, compare_runs
from cachemark.report.compare.within_run import compare_within_run
from cachemark.report.stored_run import StoredRun


def compare_stored(
    baselines: Sequence[StoredRun],
    others: Sequence[StoredRun],
    wanted: CellFilter,
    figures: Sequence[str],
    margin_percent: float | None,
    *,
    cells: tuple[str, str] | None = None,
) -> ComparisonReport:
    """Compare the other runs with the baseline runs; without others, the parts of one run.

    `cells` names one of the baseline and one of the others, instead of `wanted`. The default margin
    is the first run's. Raises UsageError.
    """
    first = baselines[0]
    margin = first.header.experiment.margin_percent if margin_percent is None else margin_percent
    if len(baselines) == 1 and not others:
        if cells:
            return compare_cells(_side(baselines), None, cells, figures, margin)
        return compare_within_run(first.header, first.outcomes(), wanted, figures, margin)
    if not others:
        raise UsageError(
            f"{len(baselines)} runs were given: which is compared with which?",
            "name one baseline and one other run, or baseline runs --with other runs",
        )
    folders = [run.folder.resolve() for run in (*baselines, *others)]
    if len(set(folders)) < len(folders):
        twice = next(run.header.id for run in others if folders.count(run.folder.resolve()) > 1)
        raise UsageError(f"{twice}: cannot be compared with itself", "name different runs")
    before, after = _side(baselines), _side(others)
    if cells:
        return compare_cells(before, after, cells, figures, margin)
    return compare_runs(before, after, wanted, figures, margin)


def _side(runs: Sequence[StoredRun]) -> Side:
    return Side(headers=[run.header for run in runs], outcomes=[run.outcomes() for run in runs])
