"""Which pairs are tested, and what is known about each of them at a look.

The family of pairs is fixed before the run: for each figure, all pairs of all questions of a kind.
Its pairs stay in it until the end, also those that are answered early: Holm's correction over only
the pairs that are still open would have more false differences than it promises.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import msgspec

from cachemark.analysis.rounds.estimate import LogEstimate
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.statistics import Answer, classify, holm
from cachemark.model.outcome import Cell
from cachemark.model.sitting_plan import MAX_SET

FamilyPair = tuple[Cell, Cell]
_Named = TypeVar("_Named")


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer about the first of a pair, and the instrument's error that it allows for."""

    answer: Answer = "open"
    p: float | None = None
    p_holm: float | None = None
    bound: float = 1.0


def all_pairs(arms: Sequence[Cell]) -> tuple[FamilyPair, ...]:
    """Every arm with every other one."""
    return tuple(combinations(arms, 2))


def pairs_with(reference: Cell, arms: Sequence[Cell]) -> tuple[FamilyPair, ...]:
    """Every other arm with the reference."""
    return tuple((arm, reference) for arm in arms if arm != reference)


def family_of(arms: Sequence[Cell], reference: Cell | None = None) -> tuple[FamilyPair, ...]:
    """The pairs of a group: all, if its arms fit into one set, else those with the reference.

    The number of all pairs grows with the square of the arms, and so does what a difference must
    exceed to be significant.
    """
    if reference in arms and len(arms) > MAX_SET and reference is not None:
        return pairs_with(reference, arms)
    return all_pairs(arms)


def decide(
    estimates: Mapping[_Named, LogEstimate | None],
    rule: StopRule,
    *,
    more_is_better: bool = True,
    bounds: Mapping[_Named, float] | None = None,
) -> dict[_Named, Decision]:
    """The answer for each pair of a family, which are the keys of `estimates`.

    None stands for a pair that was not measured, or not often enough. It stays in the family.
    `bounds`: by which factor the instrument differs from itself, where that is known. Differences
    and equalities are corrected alike, each over all pairs.
    """
    p = {pair: _p_of_difference(of, rule) for pair, of in estimates.items()}
    p_apart = {pair: of.p_apart(rule.margin) if of else None for pair, of in estimates.items()}
    corrected, corrected_apart = _by_holm(p), _by_holm(p_apart)
    return {
        pair: _decision(
            of, rule, (p[pair], corrected[pair], corrected_apart[pair]),
            more_is_better=more_is_better, bound=(bounds or {}).get(pair, 1.0),
        )
        for pair, of in estimates.items()
    }  # fmt: skip


def decide_chosen(
    estimate: LogEstimate | None,
    rule: StopRule,
    pairs: int,
    *,
    more_is_better: bool = True,
    bound: float = 1.0,
    pairs_apart: int | None = None,
) -> Decision:
    """The answer for a pair outside of the family, which the data chose among `pairs` pairs.

    Bonferroni's correction for all of them holds whichever pair is chosen. `pairs_apart`: the same
    for the answer *equal*, where it is another number.
    """
    p = _p_of_difference(estimate, rule)
    p_apart = estimate.p_apart(rule.margin) if estimate else None
    corrected = _by_bonferroni(p, pairs), _by_bonferroni(p_apart, pairs_apart or pairs)
    return _decision(estimate, rule, (p, *corrected), more_is_better=more_is_better, bound=bound)


def _p_of_difference(estimate: LogEstimate | None, rule: StopRule) -> float | None:
    return estimate.ratio(rule.confidence).p if estimate else None


def _by_holm(p: Mapping[_Named, float | None]) -> dict[_Named, float | None]:
    """Holm's correction; a pair without a test counts as one with a p of 1."""
    corrected = holm({pair: 1.0 if of is None else of for pair, of in p.items()})
    return {pair: None if of is None else corrected[pair] for pair, of in p.items()}


def _by_bonferroni(p: float | None, tests: int) -> float | None:
    return None if p is None else min(1.0, tests * p)


def _decision(
    estimate: LogEstimate | None,
    rule: StopRule,
    p_values: tuple[float | None, float | None, float | None],
    *,
    more_is_better: bool,
    bound: float,
) -> Decision:
    """`p_values`: of a difference, the same corrected, and the corrected one of being apart."""
    p, p_holm, p_apart = p_values
    answer = classify(
        estimate.ratio(rule.confidence) if estimate else None, p_holm, rule.margin,
        more_is_better=more_is_better, level=rule.level, bound=bound, p_apart=p_apart,
    )  # fmt: skip
    return Decision(answer=answer, p=p, p_holm=p_holm, bound=bound)


def may_retire(
    decisions: Mapping[FamilyPair, Decision], needed: Collection[Cell] = ()
) -> frozenset[Cell]:
    """The arms all of whose pairs are answered, without those that are `needed` anyway.

    They may leave at the end of a square. Needed are reference arms and both arms of the A/A test,
    and all that may still be first.
    """
    arms = {arm for pair in decisions for arm in pair}
    still_open = {
        arm for pair, decision in decisions.items() if decision.answer == "open" for arm in pair
    }
    return frozenset(arms - still_open - set(needed))
