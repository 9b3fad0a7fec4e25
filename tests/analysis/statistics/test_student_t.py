"""Student's t without `scipy.stats`, which is slow to import: the same numbers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cachemark.analysis.statistics.student_t import quantile, upper_tail

DEGREES = [0.4, 1.0, 1.7, 2.0, 3.0, 4.0, 9.0, 29.0, 31.4, 999.0, 1e6]


@pytest.mark.parametrize("degrees_of_freedom", DEGREES)
def test_a_quantile_is_scipys(degrees_of_freedom: float) -> None:
    for probability in (0.5, 0.9, 0.975, 0.995, 0.9995):
        assert quantile(probability, degrees_of_freedom) == stats.t.ppf(
            probability, degrees_of_freedom
        )


def test_a_quantile_of_an_array_is_scipys() -> None:
    degrees = np.asarray(DEGREES)
    np.testing.assert_array_equal(quantile(0.975, degrees), stats.t.ppf(0.975, degrees))


@pytest.mark.parametrize("degrees_of_freedom", DEGREES)
def test_an_upper_tail_is_scipys(degrees_of_freedom: float) -> None:
    for value in (0.0, 0.1, 1.0, 2.776, 40.0, 1e6):
        assert upper_tail(value, degrees_of_freedom) == stats.t.sf(value, degrees_of_freedom)
