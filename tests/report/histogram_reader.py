"""Stored histograms, read by their format alone: nothing of cachemark and of its libraries."""

import base64
import math
import struct
import zlib
from collections import Counter
from fractions import Fraction


def decoded(text: str) -> Counter[int]:
    """A compressed HdrHistogram V2 with 3 digits from 1 ns: its counts by highest value in ns."""
    packed = zlib.decompress(base64.b64decode(text)[8:])
    assert struct.unpack(">iq", packed[12:24]) == (3, 1)
    counts, index, at = Counter[int](), 0, 40
    while at < len(packed):
        number = shift = 0
        while True:
            byte, at = packed[at], at + 1
            last = shift == 56
            number |= (byte if last else byte & 127) << shift
            shift += 7
            if last or byte < 128:
                break
        count = (number >> 1) ^ -(number & 1)
        if count < 0:  # this number of empty buckets
            index -= count
            continue
        half, part = divmod(index, 1024)
        bits, lowest = (half - 1, part + 1024) if half else (0, part)
        if count:
            counts[((lowest + 1) << bits) - 1] = count
        index += 1
    return counts


def at_percentile(times: Counter[int], percent: str) -> int:
    """The time at the rank of a percentile, rounded up, by exact arithmetic."""
    rank, passed = math.ceil(Fraction(percent) * times.total() / 100), 0
    for ns in sorted(times):
        passed += times[ns]
        if passed >= rank:
            return ns
    raise AssertionError("no times")
