"""Response time by percentile, for plots, up to the last percentile with enough operations."""

from __future__ import annotations

import msgspec

from cachemark.analysis.percentiles import min_sample_size
from cachemark.model.histogram import Histogram

# Even steps on the axis 1 / (1 − q): ten for each further nine of the percentile.
_STEPS = 10
_FURTHEST = 8 * _STEPS


class PercentilePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile, and the time in ns within which that part of the operations was done."""

    percent: float
    ns: int


def curve(times: Histogram) -> list[PercentilePoint]:
    """The percentiles whose own 95 % interval is finite with this number of operations."""
    points: list[PercentilePoint] = []
    for step in range(1, _FURTHEST + 1):
        percent = 100 * (1 - 10 ** (-step / _STEPS))
        if times.count < min_sample_size(max(percent, 100 - percent)):
            continue
        points.append(PercentilePoint(percent=percent, ns=times.percentile(percent)))
    return points
