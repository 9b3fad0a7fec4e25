"""How far a percentile, or the ratio of two, may be from what a few trials say.

Near a gap of the times a percentile jumps where the part of the operations below it changes a
little, so a standard error of the percentile itself says nothing. The part has an ordinary one. So
the ends of an interval are the percentiles of parts that are further down and up (Woodruff, JASA
47, 1952). The parts are on logits, on which a small one stays above 0.

The parts of two clients vary together, as both play in the same trials. What they have in common
moves both; what is left of each is independent of the other, and their ratio ends at the least and
the greatest on a circle. Both distances are added as squares (Zou, Donner, Statistics in Medicine
27, 2008). Where percentiles do not jump, this is Student's paired interval.
"""

from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.statistics.pooled_times import PooledPercentile

# The radii at which ends are known, in standard errors; further out they grow in proportion.
_RADII = np.concatenate([[0.0], np.geomspace(0.05, 64, 120)])
_ANGLES = np.linspace(0, 2 * np.pi, 64, endpoint=False)
# Three trials have nearly any correlation by chance.
_LEAST_TRIALS = 4
# No end is nearer than this, so that each distance has one radius.
_LEAST = 1e-12


class Reach(msgspec.Struct, frozen=True, eq=False):
    """How far below and above an estimate each radius ends, on logarithms."""

    below: NDArray[np.float64]
    above: NDArray[np.float64]

    def ends(self, radius: float) -> tuple[float, float]:
        """The distances below and above at a radius in standard errors."""
        outside = max(1.0, radius / _RADII[-1])
        low, high = (np.interp(radius, _RADII, side) for side in (self.below, self.above))
        return outside * float(low), outside * float(high)

    def radius(self, distance: float) -> float:
        """The radius that reaches this far above the estimate, or below if negative."""
        side, far = (self.below, -distance) if distance < 0 else (self.above, distance)
        return max(1.0, far / side[-1]) * float(np.interp(far, side, _RADII))

    def minus(self, other: "Reach") -> "Reach":
        """The reach of the difference of two independent estimates, by the same addition."""
        return Reach(np.hypot(self.below, other.above), np.hypot(self.above, other.below))

    def with_error(self, error: float) -> "Reach":
        """The same with an independent standard error."""
        more = error * _RADII + _LEAST * _RADII
        return Reach(np.hypot(self.below, more), np.hypot(self.above, more))


@lru_cache(1024)  # each look at a pair asks again for the same percentiles
def percentile_reach(own: PooledPercentile, *rest: PooledPercentile) -> Reach:
    """The reach of ln of a percentile, relative to the mean of others of the same trials.

    Several others are taken to move together, the worst case. There must be two trials or more.
    """
    together = float(np.mean([_correlation(own.parts, of.parts) for of in rest])) if rest else 0.0
    alone, common = (1 - abs(together)) ** 0.5, abs(together) ** 0.5
    own_ways = np.outer(_RADII, alone * np.cos(_ANGLES))
    rest_ways = np.outer(_RADII, alone * np.sin(_ANGLES))
    both_ways = np.outer(_RADII, [-common, common])
    apart, both = _moved(own, own_ways), _moved(own, both_ways)
    for of in rest:
        apart -= _moved(of, rest_ways) / len(rest)
        both -= _moved(of, np.sign(together) * both_ways) / len(rest)
    # One of the two may jump earlier than the other, and what moves both is then far and near
    # again. Whatever is within a radius counts, or the same end would have several radii.
    return Reach(
        np.maximum.accumulate(np.hypot(apart.min(axis=1), np.minimum(0, both.min(axis=1)))),
        np.maximum.accumulate(np.hypot(apart.max(axis=1), np.maximum(0, both.max(axis=1)))),
    )


def _moved(of: PooledPercentile, radii: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much ln of a percentile changes if the part below it is `radii` errors away."""
    error = max(of.least_error, float(of.parts.std(ddof=1)) / len(of.parts) ** 0.5)
    return of.moved(error * radii) - of.value


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The correlation of two samples; 0 if one does not vary, or they are too few."""
    if len(first) < _LEAST_TRIALS:
        return 0.0
    one, two = first - first.mean(), second - second.mean()
    size = float(np.sqrt((one @ one) * (two @ two)))
    return float(np.clip(one @ two / size, -1, 1)) if size > 0 else 0.0
