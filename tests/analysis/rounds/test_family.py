"""A family stays as it was fixed; arms retire when all of their questions are answered."""

import numpy as np
import pytest

from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.family import (
    FamilyPair,
    all_pairs,
    decide,
    decide_chosen,
    family_of,
    may_retire,
)
from cachemark.analysis.rounds.looks import StopRule
from cachemark.model.outcome import Cell

RULE = StopRule()


def cells(count: int) -> list[Cell]:
    return [Cell(client=f"c{n}", server="s", workload="w", load="l") for n in range(count)]


def estimate(value: float, error: float) -> LogEstimate:
    return LogEstimate(value=value, error=error, degrees_of_freedom=8)


def test_a_family_is_a_sets_pairs_or_those_with_reference() -> None:
    assert len(family_of(cells(8), cells(8)[0])) == 28
    wide = family_of(cells(9), cells(9)[3])
    assert len(wide) == 8
    assert {second for _, second in wide} == {cells(9)[3]}
    assert len(family_of(cells(9))) == 36


def test_pairs_that_were_not_measured_stay_in_the_family() -> None:
    # p = 0.0043 at t = 4, 8 degrees of freedom: below 0.0158 alone, and above it in a family of 6.
    pair, *others = all_pairs(cells(4))
    alone = decide({pair: estimate(0.4, 0.1)}, RULE)[pair]
    assert alone.answer == "better"
    rest: dict[FamilyPair, LogEstimate | None] = dict.fromkeys(others)
    among = decide({pair: estimate(0.4, 0.1), **rest}, RULE)
    assert among[pair].answer == "open"
    assert among[pair].p_holm == pytest.approx(6 * (alone.p or 0))
    assert among[others[0]].p is None


def test_answered_pairs_do_not_shrink_the_family_of_equal_ones() -> None:
    first, second, third = all_pairs(cells(3))
    found = decide(
        {first: estimate(0.0, 0.005), second: estimate(0.001, 0.005), third: estimate(0.4, 0.1)},
        RULE,
    )
    assert [found[pair].answer for pair in (first, second)] == ["equal", "equal"]
    assert found[third].p_holm == pytest.approx(3 * (found[third].p or 0))
    assert found[third].answer == "better"


def test_equality_is_corrected_as_differences_are() -> None:
    """An interval just inside the margin is equality alone, and none among 16 pairs."""
    pair, *others = all_pairs(cells(4))
    close = estimate(0.0, 0.0158)
    assert decide({pair: close}, RULE)[pair].answer == "equal"
    rest: dict[FamilyPair, LogEstimate | None] = dict.fromkeys(others)
    assert decide({pair: close, **rest}, RULE)[pair].answer == "open"
    assert decide({pair: estimate(0.0, 0.01), **rest}, RULE)[pair].answer == "equal"
    # One that the data chose may be the closest of many, though it need not be the only difference.
    assert decide_chosen(close, RULE, 1).answer == "equal"
    assert decide_chosen(close, RULE, 1, pairs_apart=6).answer == "open"


def test_the_lead_is_tested_by_itself() -> None:
    assert decide_chosen(estimate(0.4, 0.1), RULE, 1).answer == "better"
    assert decide_chosen(None, RULE, 1).answer == "open"
    no_error = LogEstimate(value=1, error=None, degrees_of_freedom=0)
    assert decide_chosen(no_error, RULE, 1).answer == "open"


def test_the_first_of_many_equals_is_seldom_significantly_faster() -> None:
    arms, runs = 12, 300
    draw = np.random.default_rng(3).normal(0, 0.02, (runs, 6, arms))
    false = {1: 0, arms * (arms - 1) // 2: 0}
    for sittings in draw:
        first = int(sittings.mean(axis=0).argmax())
        others = [
            mean_of_logs(list(sittings[:, arm] - sittings[:, first]))
            for arm in range(arms)
            if arm != first
        ]
        for pairs in false:
            decided = [decide_chosen(of, RULE, pairs).p_holm for of in others]
            false[pairs] += any(p is not None and p <= RULE.level for p in decided)
    alone, corrected = (count / runs for count in false.values())
    assert corrected <= RULE.level
    # The data choose the first, so tests without the correction are often wrong.
    assert alone > 5 * RULE.level


def test_an_unneeded_arm_retires_when_all_its_pairs_are_answered() -> None:
    a, b, c = cells(3)
    found = decide(
        {(a, b): estimate(0.05, 0.05), (a, c): estimate(0.9, 0.05), (b, c): estimate(0.8, 0.05)},
        RULE,
    )
    assert found[a, b].answer == "open"
    assert may_retire(found) == {c}
    assert may_retire(found, [c]) == frozenset()
