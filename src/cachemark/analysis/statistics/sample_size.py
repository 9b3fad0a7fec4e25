"""The number of trials that settle a comparison, for planning the *next* run.

It is the least number with which both of these happen with a probability of 80 %:

- a true difference as large as the margin is significant at the level that Holm's correction uses
  for the first of its tests;
- the interval of equal cells lies within the margin.

The variation is estimated from a few trials and is uncertain itself. So the upper limit of its
one-sided 80 % interval is used: Browne, Statistics in Medicine 14 (1995).

Do not add blocks to a run until it shows the desired result: its p values would be wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from cachemark.analysis.statistics.decision import ALPHA, Tests
from cachemark.analysis.statistics.quantiles import chi2_quantile, t_quantile

POWER = 0.8
# Nobody runs more than this; a quieter machine is needed instead.
MAX_TRIALS = 1000


def pairs_needed(
    first: Sequence[float],
    second: Sequence[float],
    margin: float,
    tests: int = 1,
    *,
    level: float = ALPHA,
) -> int | None:
    """Blocks for a paired ratio in a family of `tests`; `first` and `second` are the trials so far.

    None if more than MAX_TRIALS would be needed, or if the margin is 0.
    """
    if len(first) < 2:
        return None
    logs = np.log(np.asarray(first, dtype=float)) - np.log(np.asarray(second, dtype=float))
    return _least(
        float(logs.var(ddof=1)), len(logs) - 1, 1.0, margin, Tests(count=tests, level=level)
    )


def trials_needed(
    first: Sequence[float],
    second: Sequence[float],
    margin: float,
    tests: int = 1,
    *,
    level: float = ALPHA,
) -> int | None:
    """Values on each side for an unpaired ratio, with Welch's degrees of freedom."""
    if min(len(first), len(second)) < 2:
        return None
    one, two = (
        float(np.log(np.asarray(part, dtype=float)).var(ddof=1)) for part in (first, second)
    )
    both = one + two
    # Welch-Satterthwaite for n trials a side: (one + two)² / (one² + two²) · (n − 1).
    degrees = both**2 / (one**2 + two**2) if both else 1.0
    known = degrees * (min(len(first), len(second)) - 1)
    return _least(both, known, degrees, margin, Tests(count=tests, level=level))


def _least(
    variance: float, known: float, degrees_of_freedom: float, margin: float, tests: Tests
) -> int | None:
    """The least n for a variance that is known with `known` degrees of freedom.

    The test of n values has degrees_of_freedom · (n − 1).
    """
    upper = variance * known / chi2_quantile(1 - POWER, known)

    def is_enough(count: int) -> bool:
        degrees = degrees_of_freedom * (count - 1)
        alone, together = (
            t_quantile((1 + confidence) / 2, degrees)
            for confidence in (tests.confidence, tests.family_confidence)
        )
        differ = together + t_quantile(POWER, degrees)
        # Equal cells can miss on either side.
        equal = alone + t_quantile((1 + POWER) / 2, degrees)
        return max(differ, equal) * (upper / count) ** 0.5 <= math.log1p(margin)

    counts = range(2, MAX_TRIALS + 1)
    place = bisect_left(counts, True, key=is_enough)
    return counts[place] if place < len(counts) else None
