"""Quantiles and p values of Student's t and of χ², for intervals at any confidence."""

from __future__ import annotations

from scipy import special


def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The value that Student's t stays below with this probability."""
    return float(special.stdtrit(degrees_of_freedom, probability))


def two_sided_p(t: float, degrees_of_freedom: float) -> float:
    """The probability that Student's t is at least this far from 0."""
    return float(2 * special.stdtr(degrees_of_freedom, -abs(t)))


def chi2_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The value that χ² stays below with this probability."""
    return float(special.chdtri(degrees_of_freedom, 1 - probability))
