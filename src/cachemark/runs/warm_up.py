"""How long a client is warmed up, and when it is warm. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from cachemark.model.experiment import Timing, Workload

# Two stretches of so many slices are compared. A JIT compiler works for seconds, by leaps.
_STRETCH = 8
# A client whose typical slice still gains more than this is not warm.
_GAIN = 1.03


def warmup_ms(workload: Workload, timing: Timing) -> int:
    """How long to warm up at most: what the workload says comes before what the experiment says."""
    return timing.warmup_ms if workload.warmup_ms is None else workload.warmup_ms


def is_warm(ops: Sequence[int]) -> bool:
    """Whether the last slices did not do more operations than the ones before them."""
    if len(ops) < 2 * _STRETCH:
        return False
    before, last = ops[-2 * _STRETCH : -_STRETCH], ops[-_STRETCH:]
    return median(last) <= _GAIN * median(before)
