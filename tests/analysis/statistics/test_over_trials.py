"""The interval or range beside a percentile of several trials."""

import math

import numpy as np

from cachemark.analysis.statistics.over_trials import percentile_over_trials
from cachemark.analysis.statistics.pooled_times import TrialTimes
from cachemark.model.histogram import encode
from cachemark.model.protocol import Operation
from tests.builders.histograms import from_values

TYPICAL_NS = 60_000


def trial(draw: np.random.Generator, count: int) -> TrialTimes:
    """A trial of this many calls; trials differ by some percent, and 0.4 % of the calls pause."""
    times = np.exp(draw.normal(math.log(TYPICAL_NS), 0.15, count) + draw.normal(0, 0.02))
    times[draw.random(count) < 0.004] *= 4
    response = encode(from_values(times.astype(int).tolist()))
    return TrialTimes([Operation(attempts=count, ok=count, response=response)])


def test_trials_too_small_for_a_percentile_have_an_interval() -> None:
    draw = np.random.default_rng(3)
    trials = tuple(trial(draw, 100) for _ in range(6))
    small = percentile_over_trials(trials, 99.0)
    assert small is not None
    assert small.bounds == "interval"
    assert small.low is not None
    assert small.high is not None
    assert small.low < small.value < small.high
    large = percentile_over_trials(tuple(trial(draw, 1000) for _ in range(6)), 99.0)
    assert large is not None
    assert large.bounds == "range"
    assert percentile_over_trials(trials[:3], 99.0) is None  # 300 calls have no p99


def test_the_interval_of_small_trials_holds() -> None:
    """Nominal are 95 of 100; 80 are so few that chance hardly explains them."""
    draw = np.random.default_rng(4)
    truth = percentile_over_trials(tuple(trial(draw, 2000) for _ in range(100)), 99.0)
    assert truth is not None
    held = 0
    for _ in range(100):
        found = percentile_over_trials(tuple(trial(draw, 100) for _ in range(6)), 99.0)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth.value <= found.high
    assert held > 80
