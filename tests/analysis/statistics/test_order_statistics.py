"""The interval of a median, whatever the distribution; quantiles as tables have them."""

import numpy as np
import pytest

from cachemark.analysis.statistics import median_interval, t_quantile, two_sided_p


@pytest.mark.parametrize(
    ("count", "rank"), [(6, 1), (8, 1), (9, 2), (20, 6), (40, 14), (100, 40), (1000, 469)]
)
def test_the_ranks_are_those_of_the_binomial_distribution(count: int, rank: int) -> None:
    # The largest k with P(B < k) ≤ 0.025, B binomial(n, 1/2).
    values = list(range(1, count + 1))
    assert median_interval(values) == ((count + 1) / 2, rank, count + 1 - rank)


def test_too_few_values_have_an_infinite_interval() -> None:
    assert median_interval([]) is None
    assert median_interval([3.0]) == (3.0, -np.inf, np.inf)
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (3.0, -np.inf, np.inf)


def test_infinite_values_take_their_ranks() -> None:
    values = [-np.inf, *range(10), np.inf]
    assert median_interval(values) == (4.5, 1, 8)


def test_it_covers_a_skewed_median() -> None:
    draw = np.random.default_rng(7)
    samples = draw.exponential(size=(2000, 25))
    found = [median_interval(sample) for sample in samples.tolist()]
    covered = np.mean([low <= np.log(2) <= high for _, low, high in filter(None, found)])
    assert 0.945 <= covered <= 0.985


def test_student() -> None:
    assert t_quantile(0.975, 5) == pytest.approx(2.5706, abs=1e-4)
    assert two_sided_p(2.5706, 5) == pytest.approx(0.05, abs=1e-5)
    assert two_sided_p(-2.5706, 5) == pytest.approx(0.05, abs=1e-5)
    assert two_sided_p(0, 3) == 1
