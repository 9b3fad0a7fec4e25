"""Histograms of values that a test chooses."""

from collections.abc import Sequence

import numpy as np

from cachemark.model.histogram import (
    HIGHEST_NS,
    LOWEST_NS,
    Histogram,
    HistogramError,
    bucket_index,
)


def from_values(values_ns: Sequence[int]) -> Histogram:
    """The histogram of some values. Raises HistogramError for a value outside 1 ns to 100 s."""
    for value in (min(values_ns, default=LOWEST_NS), max(values_ns, default=LOWEST_NS)):
        if not LOWEST_NS <= value <= HIGHEST_NS:
            raise HistogramError(f"{value} ns is outside 1 ns to 100 s")
    values = np.array(values_ns, dtype=np.int64)
    # `bucket_index` of them all at once: hundreds of tests draw thousands of values each.
    bits = np.frexp(values.astype(np.float64))[1]
    buckets = np.maximum(0, bits - 11)
    indexes = ((buckets + 1) << 10) + (values >> buckets) - 1024
    return Histogram(np.bincount(indexes, minlength=bucket_index(HIGHEST_NS) + 1).astype(np.int64))
