"""Encodes histograms: HdrHistogram V2, compressed, base64."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import repeat
from operator import rshift

from hdrh.histogram import HdrHistogram

LOWEST_NS, HIGHEST_NS, DIGITS = 1, 100_000_000_000, 3
# The number of bits of a value that give its bucket.
_BITS = 11


def encode(values):
    """The text of a histogram of values; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for value, count in _buckets(ordered):
        histogram.record_value(min(max(value, LOWEST_NS), HIGHEST_NS), count)
    return histogram.encode().decode()


def _buckets(ordered):
    """The least value of each bucket, and the number of values in it.

    Between two powers of 2, all buckets are equally wide.
    """
    first = 0
    while first < len(ordered):
        bits = max(_BITS, ordered[first].bit_length())
        last = bisect_left(ordered, 1 << bits, first)
        shift = bits - _BITS
        for value, count in Counter(map(rshift, ordered[first:last], repeat(shift))).items():
            yield value << shift, count
        first = last
