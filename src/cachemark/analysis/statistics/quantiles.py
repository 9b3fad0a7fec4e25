"""Quantiles and tails of Student's t, binomial and beta distributions. The only user of SciPy.

`scipy.stats` returns the same numbers (a test compares them). But its import takes
more than a second, and that of `scipy.special` a quarter of one. So each function imports it: a
verb that computes no interval starts without it.
"""

from typing import overload

import numpy as np


@overload
def t_quantile(probability: float, degrees_of_freedom: float) -> float: ...
@overload
def t_quantile(probability: float, degrees_of_freedom: np.ndarray) -> np.ndarray: ...
def t_quantile(probability: float, degrees_of_freedom: float | np.ndarray) -> float | np.ndarray:
    """The value that Student's t stays below with this probability."""
    from scipy.special import stdtrit  # noqa: PLC0415

    quantile = stdtrit(degrees_of_freedom, probability)
    return quantile if isinstance(degrees_of_freedom, np.ndarray) else float(quantile)


def t_cdf(values: np.ndarray, degrees_of_freedom: float) -> np.ndarray:
    """The probabilities that Student's t is at most as large as each value."""
    from scipy.special import stdtr  # noqa: PLC0415

    return stdtr(degrees_of_freedom, values)


def two_sided_p(t: float, degrees_of_freedom: float) -> float:
    """The probability that Student's t is at least this far from 0."""
    from scipy.special import stdtr  # noqa: PLC0415

    # The distribution is symmetric, and 1 - stdtr(t) would lose the digits of a small tail.
    return float(2 * stdtr(degrees_of_freedom, -abs(t)))


def binomial_cdf(most: np.ndarray, count: int, probability: float) -> np.ndarray:
    """The probabilities of at most `most` successes in `count` independent attempts."""
    from scipy.special import bdtr  # noqa: PLC0415

    return bdtr(most, count, probability)


def beta_quantile(probability: float, first: float, second: float) -> float:
    """The value that a beta distribution stays below with this probability."""
    from scipy.special import betaincinv  # noqa: PLC0415

    return float(betaincinv(first, second, probability))
