"""The figures of one trial: its rate, and percentiles that its sample supports."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cachemark import histogram
from cachemark.protocol import Done, Operation


def rate(operations: Sequence[Operation], elapsed_ns: int) -> float:
    """Operations done per second: ok / elapsed. What failed is no operation."""
    return sum(operation.ok for operation in operations) / elapsed_ns * 1e9


def ok(window: Done) -> int:
    """Operations of all kinds that were done."""
    return sum(operation.ok for operation in window.operations.values())


def least_sample(percent: float) -> int:
    """The least sample whose two-sided 95 % order-statistic interval of a percentile is finite.

    n ≥ ln(0.025) / ln(p): 6 for p50, 36 for p90, 368 for p99, 3 688 for p99.9.
    """
    return math.ceil(math.log(0.025) / math.log(percent / 100))


def response_ns(operations: Sequence[Operation], percent: float) -> int | None:
    """A percentile of the merged response times in ns; None where the sample is too small."""
    blobs = [histogram.decode(op.response) for op in operations if op.response]
    if not blobs:
        return None
    merged = histogram.merge(blobs)
    if merged.count < least_sample(percent):
        return None
    # A clock too coarse for an operation says 0, which is below what a histogram may hold.
    return max(histogram.LOWEST_NS, merged.percentile(percent))
