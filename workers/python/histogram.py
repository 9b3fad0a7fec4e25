"""Histograms as they travel: HdrHistogram V2, compressed, base64."""

from __future__ import annotations

from collections import Counter

from hdrh.histogram import HdrHistogram

LOWEST_NS, HIGHEST_NS, DIGITS = 1, 100_000_000_000, 3


def encode(counts):
    """A histogram of values and their counts as it travels; None if there are none."""
    if not counts:
        return None
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for value, count in _bucketed(counts).items():
        histogram.record_value(min(max(value, LOWEST_NS), HIGHEST_NS), count)
    return histogram.encode().decode()


def _bucketed(counts):
    """Counts by the least value of each bucket: to find one is what takes time in a histogram."""
    sums = Counter()
    for value, count in counts.items():
        shift = max(0, value.bit_length() - 11)
        sums[value >> shift << shift] += count
    return sums
