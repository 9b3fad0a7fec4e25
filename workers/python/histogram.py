"""Encodes histograms: HdrHistogram V2, compressed, base64."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import repeat
from operator import rshift

from hdrh.histogram import HdrHistogram

LOWEST_NS, HIGHEST_NS, DIGITS = 1, 100_000_000_000, 3
# Of the 52 bits after a double's leading 1, the first ten give the bucket, with the exponent.
_SHIFT = 42


def encode(values):
    """The text of a histogram of values; None without values."""
    counts = Counter(map(rshift, _bits(array("d", values)), repeat(_SHIFT)))
    if not counts:
        return None
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    least = _bits(array("Q", (bucket << _SHIFT for bucket in counts)), "d")
    for value, count in zip(least, counts.values()):
        histogram.record_value(min(max(int(value), LOWEST_NS), HIGHEST_NS), count)
    return histogram.encode().decode()


def _bits(numbers, kind="Q"):
    """The same bits as numbers of another kind."""
    return memoryview(numbers).cast("B").cast(kind)
