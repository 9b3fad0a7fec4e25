"""Student's t distribution: its quantiles and its upper tail. The only user of SciPy.

`scipy.stats.t` returns the same numbers, bit for bit (a test compares them). But the import of
`scipy.stats` takes more than a second, and that of `scipy.special` a quarter of one. So it is
imported by the first call: a verb that computes no interval starts without it.
"""

from __future__ import annotations

from typing import overload

import numpy as np


@overload
def quantile(probability: float, degrees_of_freedom: float) -> float: ...
@overload
def quantile(probability: float, degrees_of_freedom: np.ndarray) -> np.ndarray: ...
def quantile(probability: float, degrees_of_freedom: float | np.ndarray) -> float | np.ndarray:
    """The value that t exceeds with a probability of 1 - `probability`."""
    from scipy.special import stdtrit  # noqa: PLC0415

    found = stdtrit(degrees_of_freedom, probability)
    return found if isinstance(degrees_of_freedom, np.ndarray) else float(found)


def upper_tail(value: float, degrees_of_freedom: float) -> float:
    """The probability that t exceeds `value`."""
    from scipy.special import stdtr  # noqa: PLC0415

    # The distribution is symmetric, and 1 - stdtr(value) would lose the digits of a small tail.
    return float(stdtr(degrees_of_freedom, -value))
