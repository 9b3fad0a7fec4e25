"""The median with an exact interval: it needs independence, and no assumption about the shape."""

from collections.abc import Sequence

import numpy as np

from cachemark.analysis.statistics.interval import CONFIDENCE
from cachemark.analysis.statistics.quantiles import binomial_cdf


def median_interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float, float] | None:
    """The median, and two order statistics between which the true median lies; None without values.

    The number of values below the true median is binomial(n, 1/2). So the k-th smallest and the
    k-th largest value enclose it with probability 1 − 2 · P(B < k). k is the largest number that
    keeps the confidence; if there is none (n < 6 at 95 %), the interval is infinite.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    count = len(ordered)
    if not count:
        return None
    # P(B < k) = P(B ≤ k − 1) for k = 1, 2, …
    below = binomial_cdf(np.arange(count // 2), count, 0.5)
    ranks = int(np.searchsorted(below, (1 - confidence) / 2, side="right"))
    middle = float(np.median(ordered))
    if ranks == 0:
        return middle, -float("inf"), float("inf")
    return middle, float(ordered[ranks - 1]), float(ordered[-ranks])
