"""Two builds that were played in turns, as a comparison: the base is the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.rounds.answers import Answers, GroupAnswer
from cachemark.analysis.rounds.contrast import RoundContrast
from cachemark.analysis.rounds.pairs import ROUND_FIGURES
from cachemark.analysis.statistics import Contrast, ContrastAnswer, Interval, absolute_figure
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.compare.model import ComparisonReport, ComparisonRow, Gate
from cachemark.report.compare.pairs import count_tests, reason_lines
from cachemark.report.compare.selection import rejection_reason, trials_by_cell, valid_trials


def compare_in_turns(
    answers: Answers | None, outcomes: Sequence[Outcome], builds: tuple[str, str], gate: Gate
) -> ComparisonReport:
    """The head against the base by every figure, for each workload and load.

    A head without a valid trial is lost, if the base has one. Raises UsageError if nothing can be
    compared.
    """
    groups = answers.groups if answers else []
    rows = [row for group in groups if (row := _row(group, outcomes))]
    compared = any(contrast.ratio for row in rows for contrast in row.contrasts)
    lost = [] if compared else _lost(outcomes, *builds)
    if answers is None or not (compared or lost):
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
    pairs = [pair for of in group.rankings for pair in of.pairs]
    if not pairs:
        return None
    return ComparisonRow(
        baseline=pairs[0].first,
        other=pairs[0].second,
        contrasts=[_contrast(pair.reversed(), outcomes) for pair in pairs],
    )


def _contrast(head: RoundContrast, outcomes: Sequence[Outcome]) -> Contrast:
    """Head / base, in the words of comparisons."""
    return Contrast(
        figure=head.figure,
        baseline=_absolute(head.figure, head.second, outcomes),
        other=_absolute(head.figure, head.first, outcomes),
        counts=(head.sittings, head.sittings),
        ratio=head.ratio,
        p_holm=head.p_holm,
        answer=answer_of(head),
        needed=head.needed,
        why=head.why,
    )


def answer_of(head: RoundContrast) -> ContrastAnswer:
    """Whether the first build of a contrast is better or worse than the second."""
    if head.answer == "equal":
        return "equivalent"
    if head.answer == "open":
        return "inconclusive"
    better = (head.answer == "above") == ROUND_FIGURES[head.figure].more_is_better
    return "better" if better else "worse"


def _absolute(figure: str, cell: Cell, outcomes: Sequence[Outcome]) -> Interval | None:
    """A build's own figure over its sittings."""
    own = [outcome for outcome in valid_trials(outcomes) if outcome.trial.cell == cell]
    values = [value for outcome in own if (value := ROUND_FIGURES[figure].of(outcome))]
    return absolute_figure(values) if values else None
