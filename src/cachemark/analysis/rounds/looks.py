"""When a run may answer, at which level, and how long it would take where it may not.

A run declares beforehand after how many sittings it will look at its data. A test that is repeated
at every look would find differences where there are none, so each look uses a stricter level, and
the intervals of all looks together hold 95 %. A fixed number of sittings is looked at once, at the
ordinary level.
"""

import math
import sys

import msgspec
import numpy as np

from cachemark.analysis.rounds.estimate import LogEstimate
from cachemark.analysis.statistics import ALPHA, Unit, t_cdf, t_quantile

LOOKS = (6, 9, 12)
# The nominal level of each look: Pocock's constant for five looks (Biometrika 64, 1977). Simulated,
# three looks after 6, 9 and 12 sittings are wrong in 3.6 % of runs, and in less with heavy tails.
LOOK_LEVEL = 0.0158
# The level of a run that may have more sittings than the last look. It is unknown how often such a
# run was lengthened, and each of its ends was a look. Simulated, looks after 6, 9, 12 and then each
# further sitting up to 24 are wrong in 4.7 % of runs, and after 24 and 48 instead in 4.5 %.
LATE_LEVEL = 0.0065
# With fewer sittings there is no interval over sittings, and so no answer.
MIN_SITTINGS = 4
# The same for blocks of trials, which have no rounds to answer from meanwhile.
MIN_BLOCKS = 2
# The probability with which the printed number of sittings settles a question.
POWER = 0.8
# No run is worth more sittings; a quieter machine is needed instead.
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
        if self.looks and self.planned is not None and self.planned > LOOKS[-1]:
            return LATE_LEVEL
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

        Between two looks, the last answers stay. The end of a run is a look.
        """
        if final:
            return sittings if sittings >= self.first else 0
        return max((look for look in self.looks if look <= sittings), default=0)


def looks_that_fit(
    limit_s: float, sitting_s: float, looks: tuple[int, ...] = LOOKS
) -> tuple[int, ...]:
    """The looks that a time limit has room for; none if not even the first one fits."""
    return tuple(look for look in looks if look * sitting_s <= limit_s)


def needed(estimate: LogEstimate, rule: StopRule, tests: int = 1, bound: float = 1.0) -> int | None:
    """The total number of sittings (blocks, runs) that settles it with a probability of 80 %.

    The probability is predictive, of the mean that the sittings so far and the others will have
    together (Spiegelhalter, Freedman, Blackburn, Controlled Clinical Trials 7, 1986). It includes
    what is not known about the truth: where that may be near the margin, many more are printed. The
    family has `tests` tests; `bound` is the instrument's own error.

    None if there is no deviation yet, or if more than MAX_SITTINGS would be needed.
    """
    count, degrees = estimate.count, estimate.degrees_of_freedom
    if estimate.error is None or degrees <= 0 or count < 2:
        return None
    totals = _totals_after(count)
    deviation = estimate.error * math.sqrt(count)
    later = degrees / (count - 1) * (totals - 1)
    reach = t_quantile(1 - rule.level / (2 * tests), later) * deviation / np.sqrt(totals)
    margin, own_error = math.log1p(rule.margin), math.log(bound)
    far = np.maximum(reach, max(margin, own_error))
    # If the instrument's own error exceeds the margin, no ratio can be equal.
    near = np.maximum(0.0, margin - reach) if own_error <= margin else np.zeros_like(reach)
    # The deviation of the mean of all sittings from the mean of the sittings so far.
    spread = deviation * np.sqrt(1 / count - 1 / totals) + sys.float_info.min

    def below(value: np.ndarray) -> np.ndarray:
        return t_cdf((value - estimate.value) / spread, degrees)

    enough = totals[1 - below(far) + below(-far) + below(near) - below(-near) >= POWER]
    return int(enough[0]) if len(enough) else None


def narrow_at(estimate: LogEstimate, rule: StopRule, confidence: float) -> int | None:
    """The total number of sittings that make the interval as narrow as the margin.

    By the deviation so far. None without one, or if more than MAX_SITTINGS would be needed.
    """
    if estimate.error is None or estimate.degrees_of_freedom <= 0 or estimate.count < 2:
        return None
    totals = np.append(estimate.count, _totals_after(estimate.count))
    quantiles = t_quantile((1 + confidence) / 2, totals - 1)
    reach = quantiles * estimate.error * np.sqrt(estimate.count / totals)
    enough = totals[reach <= math.log1p(rule.margin)]
    return int(enough[0]) if len(enough) else None


def _totals_after(count: int) -> np.ndarray:
    """The numbers of sittings that are tried: the next ones, then in steps of 5 %."""
    steps = (
        math.ceil(math.log(MAX_SITTINGS / count) / math.log(1.05)) if count < MAX_SITTINGS else 0
    )
    return np.unique(np.rint(np.geomspace(count + 1, MAX_SITTINGS, steps)))
