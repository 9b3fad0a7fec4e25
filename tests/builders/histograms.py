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
    counts = np.zeros(bucket_index(HIGHEST_NS) + 1, dtype=np.int64)
    for value in values_ns:
        if not LOWEST_NS <= value <= HIGHEST_NS:
            raise HistogramError(f"{value} ns is outside 1 ns to 100 s")
        counts[bucket_index(value)] += 1
    return Histogram(counts)
