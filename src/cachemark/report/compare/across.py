"""Comparison of two runs, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.statistics import unpaired
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.work_identity import changes, definition
from cachemark.report.compare.differences import differences, other_machine
from cachemark.report.compare.family import Pair, absent, decided, lines, notes, tests
from cachemark.report.compare.selection import Wanted, by_cell, by_name, valid, why_not
from cachemark.report.compare.value import Compared
from cachemark.runs.store import RunHeader


def across(
    headers: tuple[RunHeader, RunHeader],
    outcomes: tuple[Sequence[Outcome], Sequence[Outcome]],
    wanted: Wanted,
    figures: Sequence[str],
    margin_percent: float,
) -> Compared:
    """Compare the second run with the first. Raises UsageError if they have no cell in common."""
    first, second = (by_cell(trials) for trials in outcomes)
    names = headers[0].id, headers[1].id
    wanted.check([*first, *second], " or ".join(names))
    cells = sorted(filter(wanted.has, first.keys() | second.keys()), key=by_name)
    pairs: list[Pair] = []
    lost: list[tuple[Cell, str]] = []
    left_out: list[tuple[Cell, str]] = []
    for cell in cells:
        before, after = first.get(cell, []), second.get(cell, [])
        why = _why(before, after, names)
        if valid(before) and after and not valid(after):
            lost.append((cell, why_not(after)))
        elif why:
            left_out.append((cell, why))
        else:
            pairs.append(_pair(cell, before, after))
    if not pairs and not lost:
        raise UsageError(
            f"{names[0]} and {names[1]} have no cell to compare",
            lines(left_out)[0] if left_out else "list the runs and their cells: cachemark history",
        )
    rows = decided(pairs, figures, margin_percent, unpaired)
    machine = other_machine(headers[0].host, headers[1].host)
    return Compared(
        baseline=names[0],
        other=names[1],
        paired=False,
        margin_percent=margin_percent,
        tests=tests(rows),
        rows=rows,
        lost=lines([*absent(rows, lost=True), *lost]),
        left_out=lines([*absent(rows, lost=False), *left_out]),
        differences=differences(headers, pairs),
        notes=[
            *(["the machines differ, and each ratio includes this difference"] if machine else []),
            *notes(rows, pairs, paired=False),
        ],
    )


def _pair(cell: Cell, before: list[Outcome], after: list[Outcome]) -> Pair:
    return Pair(baseline=cell, other=cell, before=valid(before), after=valid(after))


def _why(before: list[Outcome], after: list[Outcome], names: tuple[str, str]) -> str:
    """The reason why a cell of two runs cannot be compared; empty if it can."""
    if not valid(before) and not valid(after):
        return f"no valid trial: {why_not(after or before)}"
    for name, trials in zip(names, (before, after), strict=True):
        if not valid(trials):
            return f"no valid trial in {name}: {why_not(trials)}"
    changed = changes(definition(before[0]), definition(after[0]))
    return f"the work differs: {'; '.join(changed)}" if changed else ""
