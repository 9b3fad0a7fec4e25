"""Comparison of two runs, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.statistics import unpaired
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.work_identity import changed_settings, definition
from cachemark.report.compare.differences import differences, machines_differ
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.pairs import (
    Pair,
    count_tests,
    decided_rows,
    missing_figures,
    notes,
    reason_lines,
)
from cachemark.report.compare.selection import (
    CellFilter,
    rejection_reason,
    sort_key,
    trials_by_cell,
    valid_trials,
)
from cachemark.runs.store import RunHeader


def compare_runs(
    headers: tuple[RunHeader, RunHeader],
    outcomes: tuple[Sequence[Outcome], Sequence[Outcome]],
    wanted: CellFilter,
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare the second run with the first. Raises UsageError if they have no cell in common."""
    first, second = (trials_by_cell(trials) for trials in outcomes)
    names = headers[0].id, headers[1].id
    wanted.check([*first, *second], " or ".join(names))
    cells = sorted(filter(wanted.has, first.keys() | second.keys()), key=sort_key)
    pairs: list[Pair] = []
    lost: list[tuple[Cell, str]] = []
    left_out: list[tuple[Cell, str]] = []
    for cell in cells:
        before, after = first.get(cell, []), second.get(cell, [])
        reason = _incomparable_reason(before, after, names)
        if valid_trials(before) and after and not valid_trials(after):
            lost.append((cell, rejection_reason(after)))
        elif reason:
            left_out.append((cell, reason))
        else:
            pairs.append(_pair(cell, before, after))
    if not pairs and not lost:
        reasons = [*reason_lines(left_out), "cachemark history lists the runs and their cells"]
        raise UsageError(f"{names[0]} and {names[1]} have no cell to compare", reasons[0])
    rows = decided_rows(pairs, figures, margin_percent, unpaired)
    machine = machines_differ(headers[0].host, headers[1].host)
    return ComparisonReport(
        baseline=names[0],
        other=names[1],
        paired=False,
        margin_percent=margin_percent,
        tests=count_tests(rows),
        rows=rows,
        lost=reason_lines([*missing_figures(rows, lost=True), *lost]),
        left_out=reason_lines([*missing_figures(rows, lost=False), *left_out]),
        differences=differences(headers, pairs),
        notes=[
            *(["the machines differ, and each ratio includes this difference"] if machine else []),
            *notes(rows, pairs, paired=False),
        ],
    )


def _pair(cell: Cell, before: list[Outcome], after: list[Outcome]) -> Pair:
    return Pair(baseline=cell, other=cell, before=valid_trials(before), after=valid_trials(after))


def _incomparable_reason(
    before: list[Outcome], after: list[Outcome], names: tuple[str, str]
) -> str:
    """The reason why a cell of two runs cannot be compared; empty if it can."""
    if not valid_trials(before) and not valid_trials(after):
        return f"no valid trial: {rejection_reason(after or before)}"
    for name, trials in zip(names, (before, after), strict=True):
        if not valid_trials(trials):
            return f"no valid trial in {name}: {rejection_reason(trials)}"
    changed = changed_settings(definition(before[0]), definition(after[0]))
    return f"the work differs: {'; '.join(changed)}" if changed else ""
