"""The percentiles that are reported, and the number of operations that each of them needs."""

import math

PERCENTILES = (50.0, 90.0, 99.0, 99.9)


def min_sample_size(percent: float) -> int:
    """The least sample whose two-sided 95 % order-statistic interval of a percentile is finite.

    n ≥ ln(0.025) / ln(p): 6 for p50, 36 for p90, 368 for p99, 3 688 for p99.9.
    """
    return math.ceil(math.log(0.025) / math.log(percent / 100))
