"""Tables with a known truth: whether their intervals hold, and agree with the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from claimed_runs import RATE, Random, cell, looked

from cachemark.analysis.rounds.comparing import (
    Looked,
    compare_pairs,
    decide_pairs,
    holding_together,
)
from cachemark.analysis.rounds.family import all_pairs
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.rounds.ranking import standing
from cachemark.analysis.statistics import Comparison
from cachemark.model.outcome import Cell
from cachemark.model.plan import repetition_of


def table(
    arms: int, *, twice: bool = False, lead: float = 1.0, deviation: float = 0.05
) -> Callable[[Random], bool]:
    """Whether all intervals beside the first hold; one of the arms leads, and may play twice."""
    cells = [cell(f"c{number}") for number in range(arms)]
    played = cells + [repetition_of(cells[0])] * twice
    truths = {of: lead if of == cells[0] else 1.0 for of in played}

    def holds(draw: Random) -> bool:
        run = looked(truths, dict.fromkeys(played, deviation), draw)
        return all(
            of.ratio
            and of.ratio.low
            and of.ratio.high
            and of.ratio.low <= truths[of.first] / truths[of.second] <= of.ratio.high
            for of in _rows(run, cells)
        )

    return holds


def _rows(run: Looked, cells: Sequence[Cell]) -> list[Comparison]:
    """The first relative to each other arm, as tables show it."""
    found, pairs = standing(run, questions_of(cells)[0], RATE), all_pairs(cells)
    if found.ahead:
        compared, apart = found.against, found.ahead
    else:
        first, apart = found.ranks[0].cell, 1.0
        decided = decide_pairs(run, dict.fromkeys(pairs, 1.0), "rate")
        every = compare_pairs(run, decided, "rate", len(pairs)).values()
        both = [*every, *(of.reversed() for of in every)]
        compared = [of for of in both if of.first == first]
    return [holding_together(run, of, len(pairs), apart) for of in compared]


def left_open(arms: int, lead: float, deviation: float) -> Callable[[Random], bool]:
    """Whether a difference is an answer beside an interval that has 1 in it."""
    cells = [cell(f"c{number}") for number in range(arms)]
    truths = {of: lead if of == cells[0] else 1.0 for of in cells}

    def is_open(draw: Random) -> bool:
        run = looked(truths, dict.fromkeys(cells, deviation), draw)
        return any(
            not (of.ratio and of.ratio.low and of.ratio.high) or of.ratio.low < 1 < of.ratio.high
            for of in _rows(run, cells)
            if of.answer in ("better", "worse")
        )

    return is_open
