"""Two builds that were played in turns, as a comparison: the base is the baseline."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.rounds.answers import Answers, GroupAnswer
from cachemark.analysis.rounds.ranking import cell_figure
from cachemark.analysis.statistics import Comparison
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.compare.model import ComparisonReport, ComparisonRow, Gate
from cachemark.report.compare.pairs import count_tests, reason_lines
from cachemark.report.compare.selection import rejection_reason, trials_by_cell, valid_trials


def compare_in_turns(
    answers: Answers, outcomes: Sequence[Outcome], builds: tuple[str, str], gate: Gate
) -> ComparisonReport:
    """The head against the base by every figure, for each workload and load.

    A head without a valid trial is lost, if the base has one. Raises UsageError if no pair is left.
    """
    rows = [row for group in answers.groups if (row := _row(group, outcomes))]
    compared = any(of.ratio for row in rows for of in row.comparisons)
    lost = [] if compared else _lost(outcomes, *builds)
    if not (compared or lost):
        raise UsageError("no sitting has a valid trial of both", _why(outcomes))
    return ComparisonReport(
        baseline=builds[0],
        other=builds[1],
        paired=True,
        margin_percent=100 * answers.rule.margin,
        level=answers.rule.level,
        tests=count_tests(rows),
        rows=rows if compared else [],
        lost=reason_lines(lost),
        lost_cells=[cell for cell, _ in lost],
        gate=gate,
        sittings=answers.sittings,
    )


def _lost(outcomes: Sequence[Outcome], base: str, head: str) -> list[tuple[Cell, str]]:
    """The cells of the head, with the reason, if it has no valid trial and the base has one."""
    cells = trials_by_cell(outcomes)
    valid = {cell: bool(valid_trials(trials)) for cell, trials in cells.items()}
    of_head = [cell for cell in cells if head in (cell.client, cell.server)]
    has_base = any(valid[cell] for cell in cells if base in (cell.client, cell.server))
    if not has_base or any(valid[cell] for cell in of_head):
        return []
    return [(cell, rejection_reason(cells[cell])) for cell in of_head]


def _why(outcomes: Sequence[Outcome]) -> str:
    """The first reason why a trial does not count."""
    reasons = (o.reason or "; ".join(o.reasons) for o in outcomes if o.verdict != "VALID")
    return next(filter(None, reasons), "")


def _row(group: GroupAnswer, outcomes: Sequence[Outcome]) -> ComparisonRow | None:
    pairs = [pair.reversed() for of in group.rankings for pair in of.pairs]
    if not pairs:
        return None
    return ComparisonRow(
        baseline=pairs[0].second,
        other=pairs[0].first,
        comparisons=[with_values(pair, outcomes) for pair in pairs],
    )


def with_values(comparison: Comparison, outcomes: Sequence[Outcome]) -> Comparison:
    """The comparison with each side's own figure over its trials."""
    return msgspec.structs.replace(
        comparison,
        first_value=cell_figure(outcomes, comparison.first, comparison.figure),
        second_value=cell_figure(outcomes, comparison.second, comparison.figure),
    )
