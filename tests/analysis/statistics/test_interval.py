"""Intervals of trials that were not paired, and those that other formats ask for."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy

from cachemark.analysis.statistics import Interval, mean_half_width
from tests.builders.compared import paired_ratio, unpaired_ratio


def test_the_ratio_is_welchs_test_on_logs() -> None:
    first, second = [100.0, 104.0, 99.0], [50.0, 61.0, 48.0, 55.0]
    ours = unpaired_ratio(first, second)
    theirs = scipy.stats.ttest_ind(np.log(first), np.log(second), equal_var=False)
    assert ours.value == pytest.approx(scipy.stats.gmean(first) / scipy.stats.gmean(second))
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.low is not None
    assert ours.high is not None
    assert ours.low < ours.value < ours.high
    assert ours.value**2 == pytest.approx(ours.low * ours.high)


@pytest.mark.parametrize("ratio", [paired_ratio, unpaired_ratio])
def test_trials_without_spread_are_as_exact_as_their_resolution(
    ratio: Callable[..., Interval],
) -> None:
    same = ratio([2.0, 2.0], [2.0, 2.0])
    assert same.p == 1.0
    assert same.low is not None
    assert same.low < 1 < (same.high or 0.0)
    other = ratio([4.0, 4.0], [2.0, 2.0])
    assert other.p is not None
    assert 0 < other.p < 0.01
    coarse = ratio([61.0, 61.0], [60.0, 60.0], 1 / 60)
    assert coarse.p is not None
    assert coarse.p > 0.05


def test_one_trial_on_a_side_has_no_interval() -> None:
    found = unpaired_ratio([2.0, 2.1], [1.0])
    assert found.value == pytest.approx(np.sqrt(2.0 * 2.1))
    assert (found.low, found.high, found.p) == (None, None, None)


def test_equals_are_seldom_called_different() -> None:
    draw = np.random.default_rng(3)
    called = 0
    for _ in range(400):
        found = unpaired_ratio(*np.exp(draw.normal(0, 0.03, (2, 5))).tolist())
        called += found.p is not None and found.p < 0.05
    assert called / 400 < 0.05 + 3.29 * (0.05 * 0.95 / 400) ** 0.5


def test_the_error_of_a_mean_is_students() -> None:
    values = [3.0, 5.0, 4.0, 9.0]
    low, high = scipy.stats.t.interval(0.999, 3, loc=np.mean(values), scale=scipy.stats.sem(values))
    assert mean_half_width(values, 0.999) == pytest.approx((high - low) / 2)
    assert mean_half_width(values[:2], 0.999) is None
