"""Statistics: textbook figures, SciPy as the judge, and how often the answers are wrong."""

import msgspec
import numpy as np
import pytest
import scipy

from cachemark.analysis.statistics import (
    geometric_mean,
    holm,
    min_sample_size,
    summarise,
)
from tests.builders.compared import compared, paired_ratio
from tests.builders.outcomes import measured


def test_the_interval_is_students_on_logs() -> None:
    values = [90.0, 100.0, 115.0, 104.0]
    ours = geometric_mean(values)
    logs = np.log(values)
    low, high = scipy.stats.t.interval(0.95, 3, loc=logs.mean(), scale=scipy.stats.sem(logs))
    assert ours.value == pytest.approx(scipy.stats.gmean(values))
    assert (ours.low, ours.high) == pytest.approx((np.exp(low), np.exp(high)))


def test_one_trial_has_no_interval() -> None:
    assert geometric_mean([5.0]).low is None


def test_the_ratio_is_the_paired_t_test() -> None:
    first, second = [102.0, 205.0, 410.0], [100.0, 200.0, 395.0]
    ours = paired_ratio(first, second)
    theirs = scipy.stats.ttest_rel(np.log(first), np.log(second))
    assert ours.p == pytest.approx(theirs.pvalue)


def test_holm() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "c": 0.06, "b": 0.06}
    )


def test_the_least_sample_of_a_percentile() -> None:
    assert [min_sample_size(p) for p in (50, 90, 99, 99.9)] == [6, 36, 368, 3688]


def test_pairing_by_block_sees_through_drift() -> None:
    # Every block is 5 % faster than the one before; the clients differ by 10 %.
    outcomes = [measured("a", b, 2000) for b in range(5)]
    outcomes += [measured("b", b, 1800) for b in range(5)]
    comparison = compared(outcomes, "b", "a", 0.02)
    assert comparison.answer == "worse"
    assert comparison.count == 5
    assert comparison.ratio is not None
    assert comparison.ratio.low is not None
    assert comparison.ratio.high is not None
    assert comparison.ratio.low < 0.9 < comparison.ratio.high
    assert comparison.ratio.high - comparison.ratio.low < 0.06


def test_a_client_against_itself_is_seldom_called_different() -> None:
    # 400 virtual comparisons of equals with 3 % of noise between blocks and 2 % within: a
    # nominal 5 % of intervals exclude 1; 3.29 standard errors around it.
    draw = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        hours = draw.normal(0, 0.03, 6)
        first, second = (np.exp(hours + draw.normal(0, 0.02, 6)) for _ in range(2))
        ratio = paired_ratio(list(first), list(second))
        assert ratio.low is not None
        assert ratio.high is not None
        wrong += not ratio.low <= 1 <= ratio.high
    assert wrong / 400 == pytest.approx(0.05, abs=3.29 * (0.05 * 0.95 / 400) ** 0.5)


def test_a_cell_with_nothing_valid_has_no_figure() -> None:
    good = measured("a", 0, 2000)
    bad = msgspec.structs.replace(good, verdict="INVALID", reasons=["it lied"])
    (summary,) = summarise([bad])
    assert summary.total is None
    assert summary.rejected == {"INVALID: it lied": 1}
    (mixed,) = summarise([good, bad])
    assert (mixed.valid, mixed.trials) == (1, 2)


def test_a_percentile_needs_its_sample() -> None:
    (summary,) = summarise([measured("a", 0, 400)])
    assert summary.total is not None
    assert summary.total.response is not None
    assert summary.total.response.percentiles[99.0] is not None
    assert summary.total.response.percentiles[99.9] is None


def test_a_cost_missing_in_a_trial_is_missing_overall() -> None:
    """The trials that happen to tell it are others than those that were asked about."""
    outcomes = [measured("a", block, 1000, index=block) for block in range(3)]
    (whole,) = summarise(outcomes)
    assert whole.client_cpu_us is not None
    assert whole.server_cpu_us is not None
    assert whole.server_rss_bytes is not None
    assert outcomes[1].measure is not None
    mute = msgspec.structs.replace(outcomes[1].measure, cpu_user_ns=0, cpu_system_ns=0)
    outcomes[1] = msgspec.structs.replace(outcomes[1], measure=mute, server_use=None)
    (found,) = summarise(outcomes)
    assert (found.client_cpu_us, found.server_cpu_us, found.server_rss_bytes) == (None,) * 3
