"""Distributions without `scipy.stats`, which is slow to import: the same numbers, t bit for bit."""

import numpy as np
import pytest
import scipy

from cachemark.analysis.statistics.quantiles import (
    binomial_cdf,
    t_cdf,
    t_quantile,
    two_sided_p,
)

DEGREES = [0.4, 1.0, 1.7, 2.0, 3.0, 4.0, 9.0, 29.0, 31.4, 999.0, 1e6]


@pytest.mark.parametrize("degrees_of_freedom", DEGREES)
def test_a_quantile_is_scipys(degrees_of_freedom: float) -> None:
    for probability in (0.5, 0.9, 0.975, 0.995, 0.9995):
        assert t_quantile(probability, degrees_of_freedom) == scipy.stats.t.ppf(
            probability, degrees_of_freedom
        )


def test_a_quantile_of_an_array_is_scipys() -> None:
    degrees = np.asarray(DEGREES)
    np.testing.assert_array_equal(t_quantile(0.975, degrees), scipy.stats.t.ppf(0.975, degrees))


@pytest.mark.parametrize("degrees_of_freedom", DEGREES)
def test_a_p_value_is_scipys(degrees_of_freedom: float) -> None:
    for value in (0.0, 0.1, 1.0, 2.776, 40.0, 1e6):
        assert two_sided_p(-value, degrees_of_freedom) == 2 * scipy.stats.t.sf(
            value, degrees_of_freedom
        )


@pytest.mark.parametrize("degrees_of_freedom", DEGREES)
def test_the_distribution_of_t_is_scipys(degrees_of_freedom: float) -> None:
    values = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(
        t_cdf(values, degrees_of_freedom), scipy.stats.t.cdf(values, degrees_of_freedom), rtol=1e-9
    )


def test_the_binomial_distribution_is_scipys() -> None:
    most = np.arange(12)
    np.testing.assert_allclose(
        binomial_cdf(most, 11, 0.5), scipy.stats.binom.cdf(most, 11, 0.5), rtol=1e-12
    )
