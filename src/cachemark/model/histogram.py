"""Histograms of times in ns, encoded as compressed HdrHistogram V2 in base64.

PyPI's hdrhistogram encodes and decodes. This module computes percentiles itself, in one pass over
the counts, because that library takes 19 ms for each.
"""

import base64
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

LOWEST_NS = 1
HIGHEST_NS = 100_000_000_000
SIGNIFICANT_DIGITS = 3
# At 3 significant digits a bucket is at most 1/1024 of its value wide.
_SUB_BUCKETS = 2048
_SUB_BUCKET_HALF = _SUB_BUCKETS // 2
# A histogram has at most 28,672 counts of up to 9 bytes.
_MAX_DECOMPRESSED = 2**19
_MAX_ENCODED = 2**20
_COOKIE_AND_LENGTH = 8
_MAX_COUNT = 2**53


class HistogramError(ValueError):
    """The text is no histogram of this protocol, or the histogram cannot give this figure."""


class Histogram:
    """How many values fell into each bucket. Immutable. Values are in ns."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts
        self.counts.flags.writeable = False
        self.count = int(counts.sum())

    def percentile(self, percent: float) -> int:
        """The value in ns at rank ceil(percent/100 · n): the highest value of its bucket.

        Raises HistogramError if the histogram is empty, or `percent` is not from 0 to 100.
        """
        return self.at_rank(self.rank(percent))

    def rank(self, percent: float) -> int:
        """The rank of a percentile, from 1. Raises HistogramError as `percentile` does."""
        if not self.count:
            raise HistogramError("no value, so no percentile")
        if not 0 <= percent <= 100:
            raise HistogramError(f"no percentile {percent}: it must be from 0 to 100")
        # Fractions such as 0.999 are not exact in binary, so the product is lowered by 10⁻¹² of it.
        return max(1, int(np.ceil(percent / 100 * self.count * (1 - 1e-12))))

    def at_rank(self, rank: int) -> int:
        """The value in ns of a rank from 1 to `count`: the highest value of its bucket."""
        return bucket_highest_ns(self._bucket(rank))

    def above(self, value_ns: int) -> int:
        """How many values are above a time in ns, and not in its bucket."""
        return int(self.counts[bucket_index(value_ns) + 1 :].sum())

    def step_ns(self, percent: float) -> int:
        """The precision of a percentile: the distance to the nearest other value, or its bucket.

        With a clock that ticks in whole µs this is 1 µs.
        """
        index = self._bucket(self.rank(percent))
        used = np.flatnonzero(self.counts)
        place = int(np.searchsorted(used, index))
        own_ns = bucket_lowest_ns(index)
        others = [int(used[at]) for at in (place - 1, place + 1) if 0 <= at < len(used)]
        nearest_ns = min((abs(bucket_lowest_ns(other) - own_ns) for other in others), default=0)
        return max(nearest_ns, bucket_highest_ns(index) - own_ns + 1)

    def _bucket(self, rank: int) -> int:
        return int(np.searchsorted(np.cumsum(self.counts), rank))

    def mean(self) -> float:
        """The mean in ns, each value taken at the middle of its bucket."""
        if not self.count:
            raise HistogramError("no value, so no mean")
        used = np.flatnonzero(self.counts)
        middles = np.array(
            [(bucket_lowest_ns(int(i)) + bucket_highest_ns(int(i))) / 2 for i in used]
        )
        return float((middles * self.counts[used]).sum() / self.count)

    def max(self) -> int:
        """The largest value in ns."""
        return self.percentile(100)


@lru_cache(maxsize=128)  # a summary decodes each histogram of a cell several times
def decode(blob: str) -> Histogram:
    """Decode a histogram. Raises HistogramError if it is malformed or has another resolution.

    The highest trackable value may differ, as it does not move a bucket. The header's offset and
    conversion ratio are ignored: encoders of other languages leave various bytes there, and every
    histogram of this protocol is in whole ns.
    """
    _check_length(blob)
    try:
        decoded = HdrHistogram.decode(blob)
    except Exception as error:  # the library raises whatever zlib, base64 or struct do
        raise HistogramError(f"not a histogram: {error}") from error
    if (
        decoded.significant_figures != SIGNIFICANT_DIGITS
        or decoded.lowest_trackable_value != LOWEST_NS
    ):
        raise HistogramError("a histogram must begin at 1 ns and have 3 significant digits")
    counts = np.ctypeslib.as_array(decoded.counts).astype(np.int64)
    if counts.min(initial=0) < 0 or counts.sum(dtype=np.float64) > _MAX_COUNT:
        raise HistogramError("a histogram with impossibly many values")
    return Histogram(counts)


def _check_length(blob: str) -> None:
    """Raise HistogramError for a text that is too long once it is decompressed."""
    if len(blob) > _MAX_ENCODED:
        raise HistogramError(f"a histogram of {len(blob)} characters")
    try:
        compressed = base64.b64decode(blob)[_COOKIE_AND_LENGTH:]
        plain = zlib.decompressobj().decompress(compressed, _MAX_DECOMPRESSED)
    except (ValueError, zlib.error) as error:
        raise HistogramError(f"not a histogram: {error}") from error
    if len(plain) == _MAX_DECOMPRESSED:
        raise HistogramError("a histogram that is too long when it is decompressed")


def merge(parts: Sequence[Histogram]) -> Histogram:
    """The sum of several histograms. Raises HistogramError if `parts` is empty."""
    if not parts:
        raise HistogramError("nothing to merge")
    counts = np.zeros(max(len(part.counts) for part in parts), dtype=np.int64)
    for part in parts:
        counts[: len(part.counts)] += part.counts
    return Histogram(counts)


def merge_encoded(blobs: Iterable[str | None]) -> Histogram | None:
    """Decode several histograms and add them up; None if there are no values.

    None among `blobs` is skipped. Raises HistogramError as `decode` does.
    """
    parts = [decode(blob) for blob in blobs if blob]
    merged = merge(parts) if parts else None
    return merged if merged and merged.count else None


def encode(histogram: Histogram) -> str:
    """Encode a histogram so that every reader of HdrHistogram V2 understands it."""
    written = HdrHistogram(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
    for index in np.flatnonzero(histogram.counts):
        written.record_value(bucket_lowest_ns(int(index)), int(histogram.counts[index]))
    return str(written.encode().decode("ascii"))


def bucket_index(value_ns: int) -> int:
    """The index of a value's bucket, in HdrHistogram's layout for 3 digits and lowest value 1."""
    bucket = max(0, value_ns.bit_length() - 11)
    return ((bucket + 1) << 10) + (value_ns >> bucket) - _SUB_BUCKET_HALF


def bucket_lowest_ns(index: int) -> int:
    """The lowest value of a bucket, in ns."""
    bucket, sub = _split(index)
    return sub << bucket


@lru_cache(maxsize=1 << 15)
def bucket_highest_ns(index: int) -> int:
    """The highest value of a bucket, in ns."""
    bucket, sub = _split(index)
    return ((sub + 1) << bucket) - 1


def _split(index: int) -> tuple[int, int]:
    bucket = (index >> 10) - 1
    sub = (index & (_SUB_BUCKET_HALF - 1)) + _SUB_BUCKET_HALF
    return (bucket, sub) if bucket >= 0 else (0, sub - _SUB_BUCKET_HALF)
