"""Comparison of clients, servers or loads of one run, paired by block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cachemark.analysis.statistics import Contrast, Figure, Tests, paired
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.pairs import (
    Pair,
    Runs,
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
    trials_by_cell,
    valid_trials,
)
from cachemark.runs.storage.store import RunHeader

# Workloads are not: an operation of one is not an operation of the other.
_FACTORS = ("client", "server", "load")


def compare_within_run(
    header: RunHeader,
    outcomes: Sequence[Outcome],
    wanted: CellFilter,
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare every other name with the first one. Raises UsageError if nothing can be paired."""
    factor = factor_of(wanted)
    cells = trials_by_cell(outcomes)
    wanted.check(cells, header.id)
    baseline, *others = getattr(wanted, factor)
    pairs: list[Pair] = []
    lost: list[tuple[Cell, str]] = []
    left_out: list[tuple[Cell, str]] = []
    for first in [cell for cell in cells if wanted.has(cell) and getattr(cell, factor) == baseline]:
        for second in [c for n in others for c in _counterparts(first, factor, n, cells)]:
            before, after = valid_trials(cells[first]), valid_trials(cells.get(second, []))
            if before and after:
                pairs.append(Pair(baseline=first, other=second, before=[before], after=[after]))
            elif before and second in cells:
                lost.append((second, rejection_reason(cells[second])))
            else:
                cell = second if before else first
                left_out.append((cell, rejection_reason(cells.get(cell, []))))
    if not pairs and not lost:
        raise UsageError(
            f"{header.id}: no cell of {baseline} can be compared with one of {', '.join(others)}",
            reason_lines(left_out)[0] if left_out else "",
        )
    level = level_of([header.experiment])
    rows = decided_rows(pairs, figures, margin_percent, _by_block, level)
    return ComparisonReport(
        baseline=baseline,
        other=others[0] if len(others) == 1 else "",
        paired=True,
        margin_percent=margin_percent,
        level=level,
        tests=count_tests(rows),
        rows=rows,
        lost=reason_lines([*missing_figures(rows, lost=True), *lost]),
        lost_cells=[cell for cell, _ in lost],
        left_out=reason_lines([*missing_figures(rows, lost=False), *left_out]),
        left_out_cells=[cell for cell, _ in left_out],
        notes=notes(rows, pairs, paired=True),
    )


def _by_block(figure: Figure, before: Runs, after: Runs, margin: float, tests: Tests) -> Contrast:
    """The contrast of the only run on each side."""
    return paired(figure, before[0], after[0], margin, tests)


def factor_of(wanted: CellFilter) -> str:
    """The factor that is compared: the one with several names. Raises UsageError."""
    several = [name for name in _FACTORS if len(getattr(wanted, name)) > 1]
    if len(several) == 1:
        factor = several[0]
        names = getattr(wanted, factor)
        if len(set(names)) == len(names):
            return factor
        raise UsageError(
            f"--{factor} {names[0]}: cannot be compared with itself", "name two different ones"
        )
    if several:
        raise UsageError(
            f"--{several[0]} and --{several[1]}: both have several values",
            "give several values for one of them only",
        )
    raise UsageError(
        "nothing to compare was named",
        "name two runs, or --client A --client B (or --server, or --load)",
    )


def _counterparts(first: Cell, factor: str, name: str, cells: Iterable[Cell]) -> list[Cell]:
    """The cells that differ from a cell in the factor only. If there are none: the cell to expect.

    An in-process cache has no server, so it is compared with the client of each server.
    """
    wanted = msgspec.structs.replace(first, **{factor: name})
    if factor != "client":
        return [wanted]
    counterparts = [
        cell
        for cell in cells
        if (cell.client, cell.workload, cell.load) == (name, first.workload, first.load)
        and (cell.server == first.server or NO_SERVER in (cell.server, first.server))
    ]
    return counterparts or [wanted]
