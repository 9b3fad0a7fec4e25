"""How each arm changes with time and with the machine, beside the arms that play in turns with it.

Turns take out what all arms have in common. Two things remain: an arm that still gains speed when
its warm-up is over, and one that follows the machine's speed less, or more, than the others do.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from cachemark.analysis.rounds.estimate import mean_of_logs
from cachemark.analysis.rounds.looks import MIN_SITTINGS
from cachemark.analysis.rounds.pairs import ArmFigures, Sittings
from cachemark.analysis.statistics import ALPHA, CONFIDENCE, Interval, holm, t_quantile
from cachemark.model.outcome import Cell
from cachemark.model.rounds import Slices

# A gain below this factor changes no answer that has a usual margin.
NOTABLE_GAIN = 1.02
# With fewer slices, a half is too short.
_MIN_SLICES = 8
# The machine must change by this much (deviation of logarithms) for a slope on its speed.
_MIN_CHANGE = 0.02
# And its variance must be this factor above the variance that chance gives the others' mean.
_MIN_PART = 4


class ArmDrift(msgspec.Struct, frozen=True, kw_only=True):
    """How an arm changes, relative to the others of its set, over `sittings` sittings.

    - `halves`: its rate in the second half of a sitting relative to the first, divided by the same
      of the median arm: an arm that loses speed makes no other gain. Of two arms, by the
      ratio of the other (`of_two`). `p_holm` is corrected over the arms of the set.
    - `slope`: by how many percent its rate changes from sitting to sitting where that of the others
      changes by 1 %. None if there are two arms, or if the machine's speed changed too little.
    """

    cell: Cell
    sittings: int
    of_two: bool
    halves: Interval
    p_holm: float | None
    slope: Interval | None

    @property
    def gains(self) -> bool:
        """Whether it is shown that the arm still gains speed, by more than NOTABLE_GAIN."""
        return self.p_holm is not None and self.p_holm < ALPHA and self.halves.value > NOTABLE_GAIN


def drifts(sittings: Sittings) -> list[ArmDrift]:
    """The drift of one set's arms; empty with fewer than two arms, or too few sittings or slices.

    Only the sittings in which all arms of the set are valid are used.
    """
    cells = max((list(arms) for arms in sittings.values()), key=len, default=[])
    whole = [arms for arms in sittings.values() if set(arms) == set(cells)]
    halves = [row for arms in whole if (row := _halves(arms, cells)) is not None]
    if len(cells) < 2 or len(halves) < MIN_SITTINGS:
        return []
    changes = np.asarray([[second - first for first, second in row] for row in halves])
    levels = np.asarray([[(first + second) / 2 for first, second in row] for row in halves])
    ratios = [
        mean_of_logs((changes[:, arm] - _usual(changes, arm)).tolist()).ratio(CONFIDENCE)
        for arm in range(len(cells))
    ]
    corrected = holm({arm: ratio.p for arm, ratio in enumerate(ratios) if ratio.p is not None})
    return [
        ArmDrift(
            cell=cell,
            sittings=len(halves),
            of_two=len(cells) == 2,
            halves=ratios[arm],
            p_holm=corrected.get(arm),
            slope=slope_of(levels, arm),
        )
        for arm, cell in enumerate(cells)
    ]


def _halves(
    arms: Mapping[Cell, ArmFigures], cells: Sequence[Cell]
) -> list[tuple[float, float]] | None:
    """ln of each arm's rates in both halves of a sitting; None if one of them has none."""
    found = [_of_halves(arms[cell].slices) for cell in cells]
    known = [of for of in found if of is not None]
    return known if len(known) == len(found) else None


def _of_halves(slices: Slices) -> tuple[float, float] | None:
    count = len(slices.ops)
    if count < _MIN_SLICES:
        return None
    middle = count // 2
    # An odd row in the middle belongs to neither half.
    parts = slice(0, middle), slice(count - middle, count)
    totals = [(sum(slices.ops[part]), sum(slices.elapsed_ns[part])) for part in parts]
    if any(ops <= 0 or ns <= 0 for ops, ns in totals):
        return None
    first, second = (math.log(ops / ns) for ops, ns in totals)
    return first, second


def _usual(changes: np.ndarray, arm: int) -> np.ndarray:
    """The median of the other arms; of three arms the median of all, as one may lose speed."""
    others = changes if changes.shape[1] == 3 else np.delete(changes, arm, axis=1)
    return np.median(others, axis=1)


def slope_of(levels: np.ndarray, arm: int) -> Interval | None:
    """The slope of an arm's level on the mean of the others, with its interval.

    Each arm varies by itself, too, so least squares would tell less than the truth. All arms are
    taken to do so alike: the mean of n others then has an n-th of the variance (Creasy, JRSS B 18,
    1956).
    """
    others = np.delete(levels, arm, axis=1)
    count, many = others.shape
    speed, own = others.mean(axis=1), levels[:, arm] / many**0.5
    (of_speed, shared), (_, of_own) = np.cov(speed, own)
    by_themselves = np.var(others - speed[:, None], axis=0, ddof=1).sum() / max(1, many - 1) / many
    if many < 2 or of_speed < max(_MIN_CHANGE**2, _MIN_PART * by_themselves):
        return None
    unlike = max(0.0, of_speed * of_own - shared**2) / (count - 2)
    sine = t_quantile((1 + CONFIDENCE) / 2, count - 2) * 2 * unlike**0.5
    sine /= math.hypot(of_speed - of_own, 2 * shared)
    angle, reach = math.atan2(2 * shared, of_speed - of_own) / 2, math.asin(min(1.0, sine)) / 2
    if sine >= 1 or abs(angle) + reach >= math.pi / 2:
        return None
    value, low, high = (many**0.5 * math.tan(angle + by) for by in (0, -reach, reach))
    return Interval(value=value, low=low, high=high)
