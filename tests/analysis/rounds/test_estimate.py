"""Estimates on logarithms add up, with their variances."""

import math

import pytest
import scipy

from cachemark.analysis.rounds.estimate import (
    LogEstimate,
    difference,
    mean_of_logs,
    pooled_within,
)


def test_over_sittings_it_is_the_paired_t_interval() -> None:
    first, second = [110.0, 108.0, 115.0, 109.0], [100.0, 101.0, 100.0, 99.0]
    logs = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    ours, known = mean_of_logs(logs).ratio(0.95), scipy.stats.ttest_1samp(logs, 0)
    assert ours.low is not None
    assert (ours.p, math.log(ours.low)) == pytest.approx(
        (known.pvalue, known.confidence_interval(0.95).low)
    )


def test_a_single_sitting_has_no_interval() -> None:
    found = mean_of_logs([0.1]).ratio(0.95)
    assert (found.low, found.high, found.p) == (None, None, None)


def test_equal_values_prove_nothing_below_the_resolution() -> None:
    found = mean_of_logs([0.0002] * 6).ratio(0.95)
    assert found.p is not None
    assert found.p > 0.05


def test_variances_of_independent_estimates_add() -> None:
    one = LogEstimate(value=0.3, error=0.03, degrees_of_freedom=5)
    two = LogEstimate(value=0.1, error=0.04, degrees_of_freedom=5)
    found = difference(one, two)
    assert (found.value, found.error) == pytest.approx((0.2, 0.05))
    # Welch and Satterthwaite: 5 · (9 + 16)² / (9² + 16²).
    assert found.degrees_of_freedom == pytest.approx(5 * 625 / 337)
    unknown = LogEstimate(value=0.1, error=None, degrees_of_freedom=0)
    assert difference(one, unknown).error is None


def test_within_sittings_the_errors_are_averaged() -> None:
    one = LogEstimate(value=0.3, error=0.03, degrees_of_freedom=9)
    two = LogEstimate(value=0.1, error=0.04, degrees_of_freedom=9)
    found = pooled_within([one, two])
    assert (found.value, found.error) == pytest.approx((0.2, 0.025))
    assert found.degrees_of_freedom == 18
