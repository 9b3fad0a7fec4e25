"""Comparison of runs, cell by cell: one run or several on each side."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
    level_of,
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
from cachemark.runs.storage.store import RunHeader


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one side: their headers, and the outcomes of each."""

    headers: list[RunHeader]
    outcomes: list[Sequence[Outcome]]

    @property
    def name(self) -> str:
        """The names of the runs."""
        return ", ".join(header.id for header in self.headers)


def compare_runs(
    baseline: Side,
    other: Side,
    wanted: CellFilter,
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare the other runs with the baseline, each cell with the one of the same name.

    Raises UsageError if they have no common cell.
    """
    first, second = (_trials_of_runs(side) for side in (baseline, other))
    wanted.check([*first, *second], f"{baseline.name} or {other.name}")
    cells = sorted(filter(wanted.has, first.keys() | second.keys()), key=sort_key)
    same_names = [(cell, cell) for cell in cells]
    return compare_sides(baseline, other, same_names, figures, margin_percent)


def compare_sides(
    baseline: Side,
    other: Side,
    cells: Sequence[tuple[Cell, Cell]],
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare pairs of cells: one of the baseline, one of the other side. Raises UsageError."""
    first, second = (_trials_of_runs(side) for side in (baseline, other))
    names = baseline.name, other.name
    pairs: list[Pair] = []
    lost: list[tuple[Cell, str]] = []
    left_out: list[tuple[Cell, str]] = []
    for ours, theirs in cells:
        before, after = first.get(ours, []), second.get(theirs, [])
        reason = _incomparable_reason(_flat(before), _flat(after), names)
        if valid_trials(_flat(before)) and _flat(after) and not valid_trials(_flat(after)):
            lost.append((theirs, rejection_reason(_flat(after))))
        elif reason:
            left_out.append((theirs if valid_trials(_flat(before)) else ours, reason))
        else:
            pairs.append(_pair((ours, theirs), before, after))
    if not pairs and not lost:
        reasons = [*reason_lines(left_out), "cachemark history lists the runs and their cells"]
        raise UsageError(f"{names[0]} and {names[1]} have no cell to compare", reasons[0])
    level = level_of(header.experiment for header in (*baseline.headers, *other.headers))
    rows = decided_rows(pairs, figures, margin_percent, unpaired, level)
    headers = baseline.headers[0], other.headers[0]
    return ComparisonReport(
        baseline=names[0],
        other=names[1],
        paired=False,
        margin_percent=margin_percent,
        level=level,
        tests=count_tests(rows),
        rows=rows,
        lost=reason_lines([*missing_figures(rows, lost=True), *lost]),
        lost_cells=[cell for cell, _ in lost],
        left_out=reason_lines([*missing_figures(rows, lost=False), *left_out]),
        left_out_cells=[cell for cell, _ in left_out],
        differences=differences(headers, pairs),
        notes=[*_machine_note(headers), *notes(rows, pairs, paired=False)],
    )


def _machine_note(headers: tuple[RunHeader, RunHeader]) -> list[str]:
    if not machines_differ(headers[0].host, headers[1].host):
        return []
    return ["the machines differ, and each ratio includes this difference"]


def _trials_of_runs(side: Side) -> dict[Cell, list[list[Outcome]]]:
    """Cell → the trials of each run that has the cell."""
    by_cell: dict[Cell, list[list[Outcome]]] = {}
    for outcomes in side.outcomes:
        for cell, trials in trials_by_cell(outcomes).items():
            by_cell.setdefault(cell, []).append(trials)
    return by_cell


def _flat(runs: list[list[Outcome]]) -> list[Outcome]:
    return [trial for run in runs for trial in run]


def _pair(
    cells: tuple[Cell, Cell], before: list[list[Outcome]], after: list[list[Outcome]]
) -> Pair:
    sides = ([valid for run in side if (valid := valid_trials(run))] for side in (before, after))
    first, second = sides
    return Pair(baseline=cells[0], other=cells[1], before=first, after=second)


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
