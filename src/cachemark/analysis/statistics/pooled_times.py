"""A percentile of the times of several trials together, and what it is without each of them.

The percentile of all times is the figure that tables show. The mean of the trials' percentiles is
another one: where pauses hit one operation in a thousand, some trials have a p99.9 with a pause and
some have one without. So the percentile of all times is also what is compared, and its uncertainty
comes from leaving out one trial after the other (the jackknife).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.statistics.censored_times import CensoredTimes
from cachemark.analysis.statistics.interval import RESOLUTION
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import Operation


class TrialTimes:
    """The response times of one trial, all kinds together. Two of them are never equal."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.times = CensoredTimes(operations)
        merged = self.times.merged
        counts = merged.counts if merged else np.zeros(0, dtype=np.int64)
        self.buckets: NDArray[np.int64] = np.flatnonzero(counts)
        self.counts: NDArray[np.int64] = counts[self.buckets]
        # What `pooled_percentile` found for this trial and those after it: it goes with the trials.
        self.pooled: dict[tuple[tuple[TrialTimes, ...], float], PooledPercentile | None] = {}


class PooledPercentile(msgspec.Struct, frozen=True, kw_only=True):
    """ln of a percentile in ns: of all trials, and without each of them.

    `step` is the distance to the next time that occurred, relative to it. `own`: ln of the least
    and of the greatest percentile of a single trial.
    """

    value: float
    without: tuple[float, ...]
    step: float
    own: tuple[float, float]

    @property
    def error(self) -> float | None:
        """The standard error of the jackknife; None for a single trial."""
        return jackknife_error(self.without)


def jackknife_error(without: Sequence[float]) -> float | None:
    """√((n − 1)/n · Σ(θᵢ − θ̄)²): Efron & Stein, Annals of Statistics 9 (1981)."""
    count = len(without)
    if count < 2:
        return None
    values = np.asarray(without)
    return math.sqrt((count - 1) / count * float(((values - values.mean()) ** 2).sum()))


def pooled_percentile(trials: tuple[TrialTimes, ...], percent: float) -> PooledPercentile | None:
    """A percentile of all trials; None if they have too few times for it, or it is a lower bound.

    A trial that has none of its own makes the percentile of all unknown, too: its times are missing
    for a reason. The trials remember it, as each comparison of a cell asks for the same.
    """
    if not trials:
        return None
    first, *others = trials
    asked = (tuple(others), percent)
    if asked not in first.pooled:
        first.pooled[asked] = _pooled_percentile(trials, percent)
    return first.pooled[asked]


def _pooled_percentile(trials: tuple[TrialTimes, ...], percent: float) -> PooledPercentile | None:
    if not all(len(trial.buckets) for trial in trials):
        return None
    length = 1 + max(int(trial.buckets[-1]) for trial in trials)
    counts = np.zeros(length, dtype=np.int64)
    for trial in trials:
        counts[trial.buckets] += trial.counts
    merged = Histogram(counts)
    ns = merged.percentile(percent)
    if merged.count < min_sample_size(percent) or not _is_exact(trials, merged, percent):
        return None
    without = [_without(counts, trial, percent) for trial in trials] if len(trials) > 1 else []
    alone = [_log(Histogram(_dense(trial, length)).percentile(percent)) for trial in trials]
    return PooledPercentile(
        value=_log(ns),
        without=tuple(without),
        step=max(RESOLUTION, merged.step_ns(percent) / max(histogram.LOWEST_NS, ns)),
        own=(min(alone), max(alone)),
    )


def _is_exact(trials: Sequence[TrialTimes], merged: Histogram, percent: float) -> bool:
    """Whether no lower bound of any trial can have moved the percentile of all."""
    return CensoredTimes.together([trial.times for trial in trials], merged).exact(percent)


def _without(counts: NDArray[np.int64], trial: TrialTimes, percent: float) -> float:
    left = counts.copy()
    left[trial.buckets] -= trial.counts
    return _log(Histogram(left).percentile(percent))


def _dense(trial: TrialTimes, length: int) -> NDArray[np.int64]:
    counts = np.zeros(length, dtype=np.int64)
    counts[trial.buckets] = trial.counts
    return counts


def _log(ns: int) -> float:
    # A clock too coarse for an operation says 0.
    return math.log(max(histogram.LOWEST_NS, ns))
