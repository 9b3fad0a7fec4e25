"""Which pairs are tested, and what is known about each of them at a look.

The family of pairs is fixed before the run. Its pairs stay in it until the end, also those that are
answered early: Holm's correction over only the pairs that are still open would have more false
differences than it promises.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import msgspec

from cachemark.analysis.rounds.estimate import LogEstimate
from cachemark.analysis.rounds.looks import Answer, StopRule, classify
from cachemark.analysis.statistics import holm
from cachemark.model.outcome import Cell
from cachemark.model.sitting_plan import MAX_SET

Pair = tuple[Cell, Cell]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a pair: whether its ratio is above or below 1, equal, or still open."""

    answer: Answer = "open"
    p: float | None = None
    p_holm: float | None = None


def all_pairs(arms: Sequence[Cell]) -> tuple[Pair, ...]:
    """Every arm with every other one."""
    return tuple(combinations(arms, 2))


def pairs_with(reference: Cell, arms: Sequence[Cell]) -> tuple[Pair, ...]:
    """Every other arm with the reference."""
    return tuple((arm, reference) for arm in arms if arm != reference)


def family_of(arms: Sequence[Cell], reference: Cell | None = None) -> tuple[Pair, ...]:
    """The pairs of a group: all, if its arms fit into one set, else those with the reference.

    The number of all pairs grows with the square of the arms, and so does what a difference must
    exceed to be significant.
    """
    if reference in arms and len(arms) > MAX_SET and reference is not None:
        return pairs_with(reference, arms)
    return all_pairs(arms)


def decide(estimates: Mapping[Pair, LogEstimate | None], rule: StopRule) -> dict[Pair, Decision]:
    """The answer for each pair of a family, which are the keys of `estimates`.

    None stands for a pair that was not measured, or not often enough. It stays in the family.
    """
    ratios = {
        pair: estimate.ratio(rule.confidence) if estimate else None
        for pair, estimate in estimates.items()
    }
    tested = {pair: ratio.p for pair, ratio in ratios.items() if ratio and ratio.p is not None}
    corrected = holm({pair: tested.get(pair, 1.0) for pair in estimates})
    return {
        pair: Decision(
            answer=classify(ratio, corrected[pair], rule) if pair in tested else "open",
            p=tested.get(pair),
            p_holm=corrected[pair] if pair in tested else None,
        )
        for pair, ratio in ratios.items()
    }


def decide_lead(estimate: LogEstimate | None, rule: StopRule) -> Decision:
    """The answer for the winner and its runner-up, tested by themselves.

    No correction is needed for the choice of the two after the measurement: the winner is named
    falsely at most as often as the level says (Hung & Fithian, Annals of Statistics 47, 2019).
    """
    return decide_chosen(estimate, rule, pairs=1)


def decide_chosen(estimate: LogEstimate | None, rule: StopRule, pairs: int) -> Decision:
    """The answer for a pair outside of the family, which the data chose among so many pairs.

    Bonferroni's correction for all of them holds whichever pair is chosen.
    """
    ratio = estimate.ratio(rule.confidence) if estimate else None
    p = ratio.p if ratio else None
    corrected = None if p is None else min(1.0, pairs * p)
    return Decision(answer=classify(ratio, corrected, rule), p=p, p_holm=corrected)


def may_retire(
    decisions: Mapping[Pair, Decision], needed: Collection[Cell] = ()
) -> frozenset[Cell]:
    """The arms all of whose pairs are answered, without those that are `needed` anyway.

    They may leave at the end of a square. Needed are reference arms and both arms of the A/A test,
    and the winner and its runner-up while the lead is open.
    """
    arms = {arm for pair in decisions for arm in pair}
    still_open = {
        arm for pair, decision in decisions.items() if decision.answer == "open" for arm in pair
    }
    return frozenset(arms - still_open - set(needed))
