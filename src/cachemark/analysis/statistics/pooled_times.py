"""A percentile of the times of several trials together, and the variation of the part below it.

The percentile of all times is the figure that tables show. The mean of the trials' percentiles is
another one: where pauses hit one operation in a thousand, some trials have a p99.9 with a pause and
some have one without. So the percentile of all times is also what is compared, and its uncertainty
comes from how the part of the operations below it varies from trial to trial.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.statistics.censored_times import CensoredTimes
from cachemark.analysis.statistics.interval import RESOLUTION
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import Operation

# Rounding must not put a part that equals a percentile's part above it.
_ROUNDING = 1e-9


class TrialTimes:
    """The response times of one trial, all kinds together. Two of them are never equal."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.times = CensoredTimes(operations)
        merged = self.times.merged
        counts = merged.counts if merged else np.zeros(0, dtype=np.int64)
        self.buckets: NDArray[np.int64] = np.flatnonzero(counts)
        self.counts: NDArray[np.int64] = counts[self.buckets]
        # Results of `pooled_percentile` for this trial and the later ones; they go with the trials.
        self.pooled: dict[tuple[tuple[TrialTimes, ...], float], PooledPercentile | None] = {}


class PooledPercentile(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """ln of a percentile in ns of all trials, and what it would be if other parts were below it.

    `step` is the distance to the next time that occurred, relative to it. `own`: ln of the least
    and of the greatest percentile of a single trial. `share` of all operations are below. `parts`:
    by how much that of each trial differs from it, on logits; `least_error` is what their mean has
    at least, as operations that do not depend on each other vary so much (binomial). `logits` and
    `logs`: the part of all operations up to each time that occurred, and ln of that time.
    """

    value: float
    step: float
    own: tuple[float, float]
    share: float
    parts: NDArray[np.float64]
    least_error: float
    logits: NDArray[np.float64]
    logs: NDArray[np.float64]

    def moved(self, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln of the percentiles whose parts below differ by `shifts` (logits) from this one's.

        Beyond the least and the greatest time they go on as from the percentile to it.
        """
        at = math.log(self.share / (1 - self.share))
        places = at + shifts - _ROUNDING
        found = self.logs[np.minimum(np.searchsorted(self.logits, places), len(self.logs) - 1)]
        # As if half of an operation were beyond each end.
        for end, log in ((self.logits[-1], self.logs[-1]), (-self.logits[-1], self.logs[0])):
            slope = (log - self.value) / (end - at)
            beyond = np.maximum(0.0, (places - end) * np.sign(end))
            found = found + np.sign(end) * slope * beyond
        return found


def pooled_percentile(trials: tuple[TrialTimes, ...], percent: float) -> PooledPercentile | None:
    """A percentile of all trials; None if they have too few times for it, or it is a lower bound.

    A trial without a percentile of its own makes the percentile of all unknown, too: its times are
    missing for a reason. The trials remember it, as each comparison of a cell asks for the same.
    """
    if not trials:
        return None
    pooled, asked = trials[0].pooled, (trials[1:], percent)
    if asked not in pooled:
        pooled[asked] = _pooled_percentile(trials, percent)
    return pooled[asked]


def _pooled_percentile(trials: tuple[TrialTimes, ...], percent: float) -> PooledPercentile | None:
    if not all(len(trial.buckets) for trial in trials):
        return None
    length = 1 + max(int(trial.buckets[-1]) for trial in trials)
    counts = np.zeros(length, dtype=np.int64)
    for trial in trials:
        counts[trial.buckets] += trial.counts
    merged = Histogram(counts)
    ns = merged.percentile(percent)
    # A lower bound of any trial can have moved the percentile of all.
    exact = CensoredTimes.together([trial.times for trial in trials], merged).exact(percent)
    if merged.count < min_sample_size(percent) or not exact:
        return None
    alone = [_log(of.percentile(percent)) for of in (trial.times.merged for trial in trials) if of]
    used = np.flatnonzero(counts)
    up_to = np.minimum(np.cumsum(counts[used]), merged.count - 0.5) / merged.count
    return PooledPercentile(
        value=_log(ns),
        step=max(RESOLUTION, merged.step_ns(percent) / max(histogram.LOWEST_NS, ns)),
        own=(min(alone), max(alone)),
        share=percent / 100,
        parts=_parts_below(trials, ns, percent / 100),
        least_error=(merged.count * percent / 100 * (1 - percent / 100)) ** -0.5,
        logits=np.log(up_to / (1 - up_to)),
        logs=np.array([_log(histogram.bucket_highest_ns(bucket)) for bucket in used.tolist()]),
    )


def _parts_below(trials: Sequence[TrialTimes], ns: int, share: float) -> NDArray[np.float64]:
    """How much the part of each trial below a percentile differs from `share`, on logits.

    Of the operations in the percentile's own bucket as many are below it as that part needs.
    """
    bucket = histogram.bucket_index(ns)
    counts = np.array([trial.counts.sum() for trial in trials])
    below = np.array([trial.counts[trial.buckets < bucket].sum() for trial in trials])
    there = np.array([trial.counts[trial.buckets == bucket].sum() for trial in trials])
    below = below + there * (share * counts.sum() - below.sum()) / there.sum()
    return (below - share * counts) / (counts.mean() * share * (1 - share))


@lru_cache(maxsize=1 << 16)
def _log(ns: int) -> float:
    # A clock too coarse for an operation says 0.
    return math.log(max(histogram.LOWEST_NS, ns))
