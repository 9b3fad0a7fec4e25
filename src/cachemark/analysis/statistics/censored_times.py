"""Percentiles of times of which some are only lower bounds.

An operation that timed out, that was given up with its connection, or that was never sent, would
have taken longer than its recorded time. A percentile is exact if it lies below all such times, or
if it hardly moves when they are taken to be infinite. Otherwise it is a lower bound, which is
printed as `≥`.
"""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.percentiles import min_sample_size
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import Operation

# A percentile counts as exact if lower bounds can move it by this part at most.
_TOLERANCE = 0.05


class Percentile(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile in ns; a lower bound unless it is `exact`."""

    ns: int
    exact: bool


class CensoredTimes:
    """The response times (or the service times) of some operations."""

    def __init__(self, operations: Sequence[Operation], *, service: bool = False) -> None:
        blobs = [operation.service if service else operation.response for operation in operations]
        self.merged: Histogram | None = histogram.merge_encoded(blobs)
        timeouts = sum(operation.errors.get("timeout", 0) for operation in operations)
        ok = sum(operation.ok for operation in operations)
        count = self.merged.count if self.merged else 0
        # Operations that time out have the longest service times, because they are given up then.
        # Other lower bounds can be anywhere among the times.
        threshold_ns = censoring_threshold_ns(operations)
        self._threshold_ns = histogram.HIGHEST_NS + 1 if threshold_ns is None else threshold_ns
        self._scattered = max(0, count - ok - timeouts)

    @classmethod
    def together(cls, parts: "Sequence[CensoredTimes]", merged: Histogram) -> "CensoredTimes":
        """The times of several parts, whose sum is `merged`."""
        whole = cls([])
        whole.merged = merged
        whole._threshold_ns = min(part._threshold_ns for part in parts)
        whole._scattered = sum(part._scattered for part in parts)
        return whole

    def exact(self, percent: float) -> bool:
        """Whether there are times, and no lower bound can have moved the percentile."""
        return self.merged is not None and self.estimate(self.merged, percent).exact

    def percentile(self, percent: float) -> Percentile | None:
        """A percentile; None if there are too few operations for it."""
        merged = self.merged
        if merged is None or merged.count < min_sample_size(percent):
            return None
        return self.estimate(merged, percent)

    def estimate(self, merged: Histogram, percent: float) -> Percentile:
        """A percentile of however few operations."""
        rank = merged.rank(percent)
        ns = merged.at_rank(rank)
        exact = ns < self._threshold_ns and self._settled(merged, rank, ns)
        return Percentile(ns=ns, exact=exact)

    def _settled(self, merged: Histogram, rank: int, ns: int) -> bool:
        """Whether scattered lower bounds, taken to be infinite, hardly move this rank."""
        if not self._scattered:
            return True
        moved = rank + self._scattered
        return moved <= merged.count and merged.at_rank(moved) <= (1 + _TOLERANCE) * ns


def censoring_threshold_ns(operations: Sequence[Operation]) -> int | None:
    """The least service time of an operation that timed out; None if none did."""
    timeouts = sum(operation.errors.get("timeout", 0) for operation in operations)
    if not timeouts:
        return None
    merged = histogram.merge_encoded(operation.service for operation in operations)
    return merged and merged.at_rank(max(1, merged.count - timeouts + 1))
