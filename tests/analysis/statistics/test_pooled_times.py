"""Percentiles of several trials together: what is kept of them, and for how long."""

import gc
import weakref

from cachemark.analysis.statistics import TrialTimes, pooled_percentile
from tests.builders.outcomes import measured


def trial(block: int) -> TrialTimes:
    window = measured("a", block, 2000).measure
    assert window is not None
    return TrialTimes(list(window.operations.values()))


def test_it_is_made_once_for_the_same_trials() -> None:
    first, second = trial(0), trial(1)
    pooled = pooled_percentile((first, second), 50.0)
    assert pooled is not None
    assert pooled_percentile((first, second), 50.0) is pooled
    assert pooled_percentile((first, second), 90.0) is not pooled
    assert pooled_percentile((first,), 50.0) is not pooled
    assert pooled_percentile((second, first), 50.0) is not pooled


def test_nothing_is_kept_of_trials_that_nobody_holds() -> None:
    """Each has 230 kB of counts, and a program such as `cachemark web` asks for thousands."""
    trials = (trial(0), trial(1))
    assert pooled_percentile(trials, 50.0) is not None
    assert pooled_percentile(trials[::-1], 50.0) is not None
    left = [weakref.ref(each) for each in trials]
    del trials
    gc.collect()
    assert [each() for each in left] == [None, None]
