"""The number of trials needed: the least one whose interval is within ± the margin.

It is an estimate from the observed variation, for planning the *next* run. Do not add blocks to a
run until it shows the desired result: its p values would be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cachemark.analysis.statistics.interval import CONFIDENCE
from cachemark.analysis.statistics.quantiles import t_quantile

# Nobody runs more than this; a quieter machine is needed instead.
MAX_TRIALS = 1000


def pairs_needed(first: Sequence[float], second: Sequence[float], margin: float) -> int | None:
    """Blocks for a paired ratio: the least n with t(n−1) · s / √n ≤ ln(1 + margin)."""
    if len(first) < 2:
        return None
    logs = np.log(np.asarray(first, dtype=float)) - np.log(np.asarray(second, dtype=float))
    return _least(float(logs.var(ddof=1)), 1.0, margin)


def trials_needed(first: Sequence[float], second: Sequence[float], margin: float) -> int | None:
    """Trials on each side for an unpaired ratio, with Welch's degrees of freedom."""
    if min(len(first), len(second)) < 2:
        return None
    one, two = (
        float(np.log(np.asarray(part, dtype=float)).var(ddof=1)) for part in (first, second)
    )
    both = one + two
    # Welch-Satterthwaite for n trials a side: (one + two)² / (one² + two²) · (n − 1).
    return _least(both, both**2 / (one**2 + two**2) if both else 1.0, margin)


def _least(variance: float, degrees_of_freedom: float, margin: float) -> int | None:
    """The least n whose half-width is within the margin, with degrees_of_freedom · (n − 1).

    None if more than MAX_TRIALS would be needed, or if the margin is 0.
    """
    counts = np.arange(2, MAX_TRIALS + 1)
    half_width = t_quantile((1 + CONFIDENCE) / 2, degrees_of_freedom * (counts - 1)) * np.sqrt(
        variance / counts
    )
    enough = np.flatnonzero(half_width <= np.log1p(margin))
    return int(counts[enough[0]]) if len(enough) else None
