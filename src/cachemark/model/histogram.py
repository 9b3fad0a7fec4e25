"""Histograms as they travel: HdrHistogram V2 compressed, base64; nanoseconds.

PyPI's hdrhistogram reads and writes the bytes; percentiles are found here in one pass over the
counts, as that library takes 19 ms for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

LOWEST_NS = 1
HIGHEST_NS = 100_000_000_000
DIGITS = 3
# At 3 significant digits a bucket is at most 1/1024 of its value wide.
_SUB_BUCKETS = 2048
_SUB_BUCKET_HALF = _SUB_BUCKETS // 2


class HistogramError(ValueError):
    """A blob that is no histogram of this protocol."""


class Histogram:
    """Counts of values in ns; frozen once made."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts
        self.counts.flags.writeable = False
        self.count = int(counts.sum())

    def percentile(self, percent: float) -> int:
        """The value in ns at rank ceil(percent/100 · n): the highest that its bucket stands for.

        Raises HistogramError when there is no value, or no
        such percentile.
        """
        if not self.count:
            raise HistogramError("no value, so no percentile")
        if not 0 <= percent <= 100:
            raise HistogramError(f"no percentile {percent}: they go from 0 to 100")
        # Shares such as 0.999 are not exact in binary: stay one part in 10¹² below.
        rank = max(1, int(np.ceil(percent / 100 * self.count * (1 - 1e-12))))
        index = int(np.searchsorted(np.cumsum(self.counts), rank))
        return highest(index)

    def mean(self) -> float:
        """The mean in ns, each value taken at the middle of its bucket."""
        if not self.count:
            raise HistogramError("no value, so no mean")
        used = np.flatnonzero(self.counts)
        middles = np.array([(lowest(int(i)) + highest(int(i))) / 2 for i in used])
        return float((middles * self.counts[used]).sum() / self.count)

    def max(self) -> int:
        """The largest value in ns."""
        return self.percentile(100)


@lru_cache(maxsize=128)  # a summary looks at each of a cell's histograms several times
def decode(blob: str) -> Histogram:
    """Read a blob. Raises HistogramError when it is none, or has another resolution.

    The highest trackable value may differ, as it does not move a bucket. The offset and ratio in
    the header are not looked at: encoders of other languages leave various bytes there, and every
    histogram of this protocol is in whole ns.
    """
    try:
        decoded = HdrHistogram.decode(blob)
    except Exception as error:  # the library raises whatever zlib, base64 or struct do
        raise HistogramError(f"not a histogram: {error}") from error
    if decoded.significant_figures != DIGITS or decoded.lowest_trackable_value != LOWEST_NS:
        raise HistogramError("a histogram must begin at 1 ns and have 3 significant digits")
    return Histogram(np.ctypeslib.as_array(decoded.counts).astype(np.int64))


def merge(parts: Sequence[Histogram]) -> Histogram:
    """The histogram of all values of several. Raises HistogramError when there is none."""
    if not parts:
        raise HistogramError("nothing to merge")
    counts = np.zeros(max(len(part.counts) for part in parts), dtype=np.int64)
    for part in parts:
        counts[: len(part.counts)] += part.counts
    return Histogram(counts)


def together(blobs: Iterable[str | None]) -> Histogram | None:
    """The histogram of all values of several blobs; None where none of them holds a value.

    Raises HistogramError as `decode` does.
    """
    parts = [decode(blob) for blob in blobs if blob]
    merged = merge(parts) if parts else None
    return merged if merged and merged.count else None


def encode(histogram: Histogram) -> str:
    """Write a blob that every reader of HdrHistogram V2 understands."""
    written = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for index in np.flatnonzero(histogram.counts):
        written.record_value(lowest(int(index)), int(histogram.counts[index]))
    return str(written.encode().decode("ascii"))


def record(values_ns: Sequence[int]) -> Histogram:
    """The histogram of some values; those outside the bounds raise HistogramError."""
    counts = np.zeros(_length(), dtype=np.int64)
    for value in values_ns:
        if not LOWEST_NS <= value <= HIGHEST_NS:
            raise HistogramError(f"{value} ns is outside 1 ns to 100 s")
        counts[index_of(value)] += 1
    return Histogram(counts)


def index_of(value_ns: int) -> int:
    """The bucket of a value: HdrHistogram's layout for 3 digits and a lowest value of 1."""
    bucket = max(0, value_ns.bit_length() - 11)
    return ((bucket + 1) << 10) + (value_ns >> bucket) - _SUB_BUCKET_HALF


def _length() -> int:
    return index_of(HIGHEST_NS) + 1


def lowest(index: int) -> int:
    """The lowest value in ns that a bucket stands for."""
    bucket, sub = _split(index)
    return sub << bucket


def highest(index: int) -> int:
    """The highest value in ns that a bucket stands for."""
    bucket, sub = _split(index)
    return ((sub + 1) << bucket) - 1


def _split(index: int) -> tuple[int, int]:
    bucket = (index >> 10) - 1
    sub = (index & (_SUB_BUCKET_HALF - 1)) + _SUB_BUCKET_HALF
    if bucket < 0:
        return 0, sub - _SUB_BUCKET_HALF
    return bucket, sub
