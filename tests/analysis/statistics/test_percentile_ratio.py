"""How far the ratio of two percentiles may be from what a few trials say."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
import scipy

from cachemark.analysis.statistics import (
    PooledPercentile,
    Reach,
    TrialTimes,
    percentile_reach,
    pooled_percentile,
    t_quantile,
)
from cachemark.model.histogram import encode
from cachemark.model.protocol import Operation
from tests.builders.histograms import from_values

US = 1000
# The machine's speed in each trial, which both clients meet.
SPEEDS = (1.0, 1.004, 0.998, 1.001, 0.997, 1.002)


def pooled(trials: Sequence[Sequence[int]], percent: float = 99.0) -> PooledPercentile:
    """A percentile of trials with these times in ns."""
    times = [
        TrialTimes([Operation(attempts=len(of), ok=len(of), response=encode(from_values(of)))])
        for of in trials
    ]
    found = pooled_percentile(tuple(times), percent)
    assert found is not None
    return found


def even(around_us: float, speed: float = 1.0) -> list[int]:
    """Times that are evenly spread by half around one, without chance."""
    return [round(at * US / speed) for at in np.linspace(0.5, 1.5, 2000) * around_us] * 100


def with_pauses(pauses: int) -> list[int]:
    """1,000 times of 100 µs, of which some are 2.5 ms instead."""
    return [100 * US] * (1000 - pauses) + [2500 * US] * pauses


def test_without_a_gap_it_is_the_paired_t_interval() -> None:
    """Both clients follow the machine; one of them also varies by itself."""
    own = [1.0, 0.998, 1.003, 1.001, 0.999, 0.999]
    one = pooled([even(100, speed * of) for speed, of in zip(SPEEDS, own, strict=True)], 50.0)
    other = pooled([even(200, speed) for speed in SPEEDS], 50.0)
    low, high = percentile_reach(one, other).ends(t_quantile(0.975, 5))
    known = scipy.stats.ttest_1samp([math.log(of) for of in own], 0).confidence_interval(0.95)
    # The buckets of a histogram are up to a thousandth wide.
    assert low == pytest.approx((known.high - known.low) / 2, abs=0.0012)
    assert high == pytest.approx((known.high - known.low) / 2, abs=0.0012)
    # Each look, table and picture asks again, and a grid of shifts takes a millisecond.
    assert percentile_reach(one, other) is percentile_reach(one, other)


def test_near_a_gap_both_of_its_sides_are_within_reach() -> None:
    """1.1 % of pauses: the p99 is one, but 0.9 % would be as likely."""
    of = pooled([with_pauses(pauses) for pauses in (8, 14, 9, 13, 11, 11)])
    assert of.value == pytest.approx(math.log(2500 * US), abs=0.001)
    low, high = percentile_reach(of).ends(t_quantile(0.975, 5))
    assert low == pytest.approx(math.log(25), abs=0.001)
    assert high == pytest.approx(0, abs=0.001)
    sure = pooled([with_pauses(pauses) for pauses in (28, 34, 29, 33, 31, 31)])
    assert max(percentile_reach(sure).ends(t_quantile(0.975, 5))) == pytest.approx(0, abs=0.001)


def test_beyond_the_last_time_it_goes_on() -> None:
    """Trials that differ much: an end is not at the greatest time because there is no greater."""
    of = pooled([even(100, speed) for speed in (0.5, 2.0, 1.0)], 99.0)
    near, far = (percentile_reach(of).ends(radius)[1] for radius in (2, 60))
    assert 0 < near < far
    assert of.value + far > of.logs[-1]


def test_a_radius_is_the_inverse_of_its_ends() -> None:
    reach = percentile_reach(pooled([even(100, speed) for speed in SPEEDS], 90.0)).with_error(0.01)
    for radius in (0.5, 3.0, 40.0, 500.0):
        below, above = reach.ends(radius)
        assert reach.radius(-below) == pytest.approx(radius, rel=0.01)
        assert reach.radius(above) == pytest.approx(radius, rel=0.01)
    assert reach.radius(0.0) == 0


def test_an_end_of_two_with_gaps_has_one_radius() -> None:
    """Pauses of different length: what moves both percentiles moves their ratio up, and down."""
    draw = random.Random(5)
    for _ in range(20):
        shared = [draw.randint(2, 30) for _ in SPEEDS]
        one = pooled([with_pauses(pauses) for pauses in shared])
        other = pooled([with_pauses((pauses + draw.randint(2, 30)) // 2) for pauses in shared])
        reach = percentile_reach(one, other).with_error(0.001)
        for radius in (0.5, 1, 2, 4, 8):
            below, above = reach.ends(radius)
            assert reach.radius(-below) == pytest.approx(radius, rel=0.05)
            assert reach.radius(above) == pytest.approx(radius, rel=0.05)


def test_the_difference_of_two_has_the_far_ends_of_both() -> None:
    ones = np.linspace(0, 1, 121)
    found = Reach(3 * ones, 1 * ones).minus(Reach(2 * ones, 4 * ones))
    assert found.below == pytest.approx(5 * ones)
    assert found.above == pytest.approx(5**0.5 * ones)


def test_trials_agreeing_by_chance_are_no_surer_than_their_operations() -> None:
    """Three trials with the same part of pauses: of 3,000 operations, 33 have one, give or take."""
    of = pooled([with_pauses(11) for _ in range(3)])
    low, _ = percentile_reach(of).ends(t_quantile(0.975, 2))
    assert low == pytest.approx(math.log(25), abs=0.001)
