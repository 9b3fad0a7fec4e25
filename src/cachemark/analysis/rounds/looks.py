"""When a run may answer, at which level, and how long it would take where it may not.

A run declares beforehand after how many sittings it will look at its data. A test that is repeated
at every look would find differences where there are none, so each look uses a stricter level, and
the intervals of all looks together hold 95 %. A fixed number of sittings is looked at once, at the
ordinary level.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import msgspec

from cachemark.analysis.rounds.estimate import LogEstimate
from cachemark.analysis.statistics import ALPHA, Unit, chi2_quantile, t_quantile

LOOKS = (6, 9, 12)
# The nominal level of each look: Pocock's constant for five looks (Biometrika 64, 1977). Simulated,
# three looks after 6, 9 and 12 sittings are wrong in 3.6 % of runs, and in less with heavy tails.
LOOK_LEVEL = 0.0158
# With fewer sittings there is no interval over sittings, and so no answer.
MIN_SITTINGS = 4
# The same for blocks of trials, which have no rounds that would tell something meanwhile.
MIN_BLOCKS = 2
# The probability with which the number of sittings that is told settles a question.
POWER = 0.8
# Nobody plays more than this; a quieter machine is needed instead.
MAX_SITTINGS = 1000


class StopRule(msgspec.Struct, frozen=True, kw_only=True):
    """The margin, and the numbers of sittings after which answers are given; none: at the end.

    `planned` is how many sittings the run has at most; None: not known. A run that may end after a
    look, or go on, has two looks. `least` is the least number of units with an answer.
    """

    margin: float = 0.05
    looks: tuple[int, ...] = LOOKS
    planned: int | None = None
    least: int = MIN_SITTINGS
    unit: Unit = "sitting"

    @property
    def level(self) -> float:
        """The level of a single test at each look: the ordinary one if there is only one look.

        The end of a run is a look, also where none was declared for it.
        """
        looks = set(self.looks)
        if looks and self.planned is not None:
            looks.add(max(self.planned, self.looks[0]))
        return LOOK_LEVEL if len(looks) > 1 else ALPHA

    @property
    def confidence(self) -> float:
        """The confidence of each printed interval; all looks together hold at least 95 %."""
        return 1 - self.level

    @property
    def first(self) -> int:
        """The least number of sittings with an answer."""
        return self.looks[0] if self.looks else self.least

    def answered_at(self, sittings: int, *, final: bool) -> int:
        """How many of the sittings the present answers are based on; 0: no answers yet.

        Between two looks, the answers are those of the last one. The end of a run is a look.
        """
        if final:
            return sittings if sittings >= self.first else 0
        return max((look for look in self.looks if look <= sittings), default=0)


def looks_that_fit(
    limit_s: float, sitting_s: float, looks: tuple[int, ...] = LOOKS
) -> tuple[int, ...]:
    """The looks that a time limit has room for; none if not even the first one fits."""
    return tuple(look for look in looks if look * sitting_s <= limit_s)


def needed(estimate: LogEstimate, rule: StopRule, tests: int = 1) -> int | None:
    """The total number of sittings (blocks, runs) that settles it with a probability of 80 %.

    It is enough for both of these: a true difference as large as the margin is significant in a
    family of `tests`, and equal arms are shown to be equal. If the estimate is beyond the margin,
    fewer may be enough to show just that. No number is enough if the truth is near the margin.

    The deviation between sittings is uncertain itself, so the upper limit of its one-sided 80 %
    interval is used (Browne, Statistics in Medicine 14, 1995). None if there is no deviation yet,
    or if more than MAX_SITTINGS would be needed.
    """
    if estimate.error is None or estimate.degrees_of_freedom <= 0 or estimate.count < 2:
        return None
    known = estimate.degrees_of_freedom
    deviation = estimate.error * math.sqrt(estimate.count)
    deviation *= math.sqrt(known / chi2_quantile(1 - POWER, known))
    effect, margin = abs(estimate.value), math.log1p(rule.margin)

    def settles(sittings: int) -> bool:
        error = deviation / math.sqrt(sittings)
        degrees = known / (estimate.count - 1) * (sittings - 1)
        significant = t_quantile(1 - rule.level / (2 * tests), degrees)
        seen = t_quantile(POWER, degrees)
        # The interval of equal arms can leave the margin on either side.
        inside = t_quantile(1 - rule.level / 2, degrees) + t_quantile((1 + POWER) / 2, degrees)
        if max(significant + seen, inside) * error <= margin:
            return True
        return (significant + seen) * error <= effect and seen * error <= effect - margin

    counts = range(2, MAX_SITTINGS + 1)
    place = bisect_left(counts, True, key=settles)
    return counts[place] if place < len(counts) else None
