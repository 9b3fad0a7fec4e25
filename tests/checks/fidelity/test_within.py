"""Virtual windows with a known truth: do intervals within one trial hold it?

As F27 of the fidelity cases, for one trial instead of several. The controls are what fails: too few
operations in a section, and requests taken for a sample.
"""

import numpy as np
import pytest

from cachemark.analysis.statistics import min_section_size
from cachemark.analysis.statistics.within_trial import sectioning_interval
from tests.checks.fidelity.test_statistics import RUNS, holds, share, sojourns

SECTIONS = 10
# As many windows at once as fit in memory comfortably.
BATCH = 20


def coverage(busy: float, percent: float, each: int, runs: int = RUNS) -> float:
    """How often a percentile's interval holds the truth, with `each` requests in a section."""
    draw = np.random.default_rng(round(1000 * busy + percent))
    truth = -float(np.log(1 - percent / 100))
    held: list[bool] = []
    for _ in range(runs // BATCH):
        for times in sojourns(draw, busy, (BATCH, SECTIONS * each)):
            parts = [ranked(part, percent) for part in times.reshape(SECTIONS, each)]
            held.append(holds(sectioning_interval(ranked(times, percent), parts), truth))
    return share(held)


def ranked(times: np.ndarray, percent: float) -> float:
    """A percentile by its nearest rank."""
    rank = int(np.ceil(percent / 100 * len(times) * (1 - 1e-12))) - 1
    return float(np.partition(times, rank)[rank])


@pytest.mark.parametrize("busy", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("percent", [50.0, 90.0, 99.0])
def test_the_least_that_a_section_may_hold_is_enough(busy: float, percent: float) -> None:
    assert 0.90 <= coverage(busy, percent, min_section_size(percent)) <= 0.99


def test_with_a_thirtieth_of_it_they_hold_too_seldom() -> None:
    assert coverage(0.8, 99.0, min_section_size(99.0) // 30) < 0.87


RATE = 2000.0
WINDOW_S = 5.0


def windows(draw: np.random.Generator) -> np.ndarray:
    """Operations in each section of windows with one caller, whose service times resemble
    each other: logarithms AR(1) with φ = 0.9, mean 1 / RATE."""
    runs, count = RUNS, round(RATE * WINDOW_S * 1.6)
    logs = np.empty((runs, count))
    logs[:, 0] = draw.normal(0, 0.5, runs)
    shocks = draw.normal(0, 0.5 * (1 - 0.9**2) ** 0.5, (runs, count))
    for i in range(1, count):
        logs[:, i] = 0.9 * logs[:, i - 1] + shocks[:, i]
    # The mean of a lognormal is exp(σ² / 2).
    ends = np.cumsum(np.exp(logs - 0.125) / RATE, axis=1)
    edges = np.linspace(0, WINDOW_S, SECTIONS + 1)
    return np.stack([np.diff(np.searchsorted(row, edges)) for row in ends])


def test_the_interval_of_a_rate_holds_it() -> None:
    found = windows(np.random.default_rng(41))
    held = [
        holds(sectioning_interval(row.sum() / WINDOW_S, (row * SECTIONS / WINDOW_S).tolist()), RATE)
        for row in found
    ]
    assert 0.90 <= share(held) <= 0.99


def test_as_if_operations_were_independent_it_would_not() -> None:
    """The Poisson interval of a count, 1.96 √n either way."""
    counts = windows(np.random.default_rng(42)).sum(axis=1)
    off = np.abs(counts - RATE * WINDOW_S) <= 1.96 * np.sqrt(counts)
    assert share(off.tolist()) < 0.75
