"""When a run answers, at which level, and how many sittings it would take."""

import math

import numpy as np
import pytest

from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.looks import (
    LOOKS,
    StopRule,
    looks_that_fit,
    narrow_at,
    needed,
)
from cachemark.analysis.statistics import classify, t_quantile


def test_repeated_looks_have_the_stricter_level_a_single_one_not() -> None:
    assert StopRule().level == 0.0158
    assert StopRule(looks=(6, 9)).level == 0.0158
    assert StopRule(looks=(6,)).level == 0.05
    assert StopRule(looks=()).level == 0.05
    # The end of a run is a look, too: after 6 sittings and after 8, there are two.
    assert StopRule(looks=(6,), planned=8).level == 0.0158
    assert StopRule(looks=(6,), planned=6).level == 0.05
    assert StopRule().confidence == pytest.approx(0.9842)
    # Beyond the last look, a run may have ended any number of times before.
    assert StopRule(looks=LOOKS, planned=12).level == 0.0158
    assert StopRule(looks=LOOKS, planned=13).level == 0.0065
    assert StopRule(looks=(), planned=20).level == 0.05


def test_between_looks_the_answers_stay_those_of_the_last_one() -> None:
    rule = StopRule()
    live = [rule.answered_at(sittings, final=False) for sittings in range(14)]
    assert live == [0] * 6 + [6] * 3 + [9] * 3 + [12] * 2
    ends = [rule.answered_at(sittings, final=True) for sittings in range(14)]
    assert ends == [0] * 6 + list(range(6, 14))


def test_fixed_sittings_are_tested_once_and_never_below_four() -> None:
    rule = StopRule(looks=())
    assert [rule.answered_at(n, final=False) for n in range(20)] == [0] * 20
    assert [rule.answered_at(n, final=True) for n in range(6)] == [0, 0, 0, 0, 4, 5]


def test_looks_must_fit_the_time() -> None:
    assert looks_that_fit(600, 50) == LOOKS
    assert looks_that_fit(599, 50) == (6, 9)
    assert looks_that_fit(300, 50) == (6,)
    assert looks_that_fit(299, 50) == ()


@pytest.mark.parametrize("truth", [0.0, math.log(1.1), math.log(0.85)])
@pytest.mark.parametrize("deviation", [0.02, 0.05])
def test_the_predicted_sittings_settle_in_four_of_five_cases(
    truth: float, deviation: float
) -> None:
    draw = np.random.default_rng(5)
    settled = total = 0
    for _ in range(200):
        rule = StopRule(looks=())
        pilot = list(draw.normal(truth, deviation, 6))
        enough = needed(mean_of_logs(pilot), rule)
        assert enough is not None
        logs = [*pilot, *draw.normal(truth, deviation, enough - 6)]
        found = mean_of_logs(logs).ratio(rule.confidence)
        settled += classify(found, found.p, rule.margin, more_is_better=True) != "open"
        total += 1
    # At least 80 %, less 3 standard errors.
    assert settled / total >= 0.715


def test_an_estimate_near_the_margin_needs_many_more_sittings() -> None:
    """Neither equality nor a difference is near, though each alone would need few."""
    rule = StopRule(looks=())
    found = [
        needed(LogEstimate(value=value, error=0.01, degrees_of_freedom=11, count=12), rule)
        for value in (0.0, math.log(1.04), math.log(1.1))
    ]
    equal, near, apart = (count or 0 for count in found)
    assert near > 5 * max(equal, apart)
    # Where the instrument's own error is larger than the margin, nothing is ever equal.
    own = LogEstimate(value=0.0, error=0.01, degrees_of_freedom=11, count=12)
    assert needed(own, rule, bound=1.06) is None


def test_more_tests_and_more_noise_need_more_sittings() -> None:
    quiet = LogEstimate(value=0.0, error=0.01, degrees_of_freedom=11, count=12)
    noisy = LogEstimate(value=0.0, error=0.03, degrees_of_freedom=11, count=12)
    rule = StopRule()
    found = [needed(of, rule, tests) for of, tests in ((quiet, 1), (quiet, 50), (noisy, 50))]
    assert found == sorted(found, key=lambda count: count or 0)
    assert len(set(found)) == 3
    assert needed(LogEstimate(value=0, error=None, degrees_of_freedom=0), rule) is None
    # A difference far beyond the margin is shown sooner than equality would be.
    far = LogEstimate(value=0.5, error=0.03, degrees_of_freedom=11, count=12)
    assert (needed(far, rule, 50) or 0) < (needed(noisy, rule, 50) or 0)


def test_the_narrow_interval_is_found_by_the_deviation_so_far() -> None:
    """Of three blocks whose ratios vary by 2 %, in a table of many pairs."""
    rule, confidence = StopRule(looks=()), 1 - 0.05 / 190
    few = LogEstimate(value=0.2, error=0.02 / 3**0.5, degrees_of_freedom=2, count=3)
    found = narrow_at(few, rule, confidence) or 0
    reach = [t_quantile((1 + confidence) / 2, n - 1) * 0.02 / n**0.5 for n in (found - 1, found)]
    assert reach[1] <= math.log1p(rule.margin) < reach[0]
    noisy = LogEstimate(value=0.2, error=5.0, degrees_of_freedom=2, count=3)
    assert narrow_at(noisy, rule, confidence) is None
    assert narrow_at(LogEstimate(value=0, error=None, degrees_of_freedom=0), rule, 0.95) is None
