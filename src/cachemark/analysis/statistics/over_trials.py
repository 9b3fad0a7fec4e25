"""A figure of a cell over its trials: the value that every table, comparison and export shows."""

import math
from collections.abc import Sequence

from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.statistics.figures import Figure, figures_of, showing
from cachemark.analysis.statistics.interval import (
    CONFIDENCE,
    MIN_INTERVAL_TRIALS,
    Interval,
    absolute_figure,
    rounding_deviation,
)
from cachemark.analysis.statistics.percentile_ratio import percentile_reach
from cachemark.analysis.statistics.pooled_times import TrialTimes, pooled_percentile
from cachemark.analysis.statistics.quantiles import t_quantile
from cachemark.model.outcome import Outcome


def over_trials(trials: Sequence[Outcome], figure: Figure) -> Interval | None:
    """A figure of some valid trials, with its range or interval; None if one of them lacks it.

    What a verdict withholds is left out.
    """
    shown = showing(trials, figure)
    if figure.percent is not None:
        windows = [trial.measure for trial in shown if trial.measure is not None]
        times = tuple(TrialTimes(list(window.operations.values())) for window in windows)
        return percentile_over_trials(times, figure.percent)
    values = figures_of(shown, figure)
    return absolute_figure(values) if values else None


def percentile_over_trials(trials: tuple[TrialTimes, ...], percent: float) -> Interval | None:
    """A percentile in ns of all trials together.

    With few trials it has their range, as any other figure of a cell; else, and if a trial has too
    few operations for the percentile, the interval of `percentile_reach`.
    """
    pooled = pooled_percentile(trials, percent)
    if pooled is None:
        return None
    value = float(round(math.exp(pooled.value)))
    if len(trials) < 2:
        return Interval(value=value)
    each_has_one = all(trial.counts.sum() >= min_sample_size(percent) for trial in trials)
    if each_has_one and len(trials) < MIN_INTERVAL_TRIALS:
        low, high = (float(round(math.exp(log))) for log in pooled.own)
        return Interval(value=value, low=low, high=high, bounds="range")
    reach = percentile_reach(pooled).with_error(rounding_deviation(pooled.step))
    below, above = reach.ends(t_quantile((1 + CONFIDENCE) / 2, len(trials) - 1))
    low, high = math.exp(pooled.value - below), math.exp(pooled.value + above)
    return Interval(value=value, low=low, high=high)
