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


class ArmDrift(msgspec.Struct, frozen=True, kw_only=True):
    """How an arm changes, relative to the others of its set, over `sittings` sittings.

    - `halves`: its rate in the second half of a sitting relative to the first, divided by the same
      of the others. `p_holm` is corrected over the arms of the set.
    - `slope`: by how many percent its rate changes from sitting to sitting where that of the others
      changes by 1 %. None if the machine's speed changed too little to tell.
    """

    cell: Cell
    sittings: int
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
        mean_of_logs(_beside_others(changes, arm).tolist()).ratio(CONFIDENCE)
        for arm in range(len(cells))
    ]
    corrected = holm({arm: ratio.p for arm, ratio in enumerate(ratios) if ratio.p is not None})
    return [
        ArmDrift(
            cell=cell,
            sittings=len(halves),
            halves=ratios[arm],
            p_holm=corrected.get(arm),
            slope=_slope(_others(levels, arm), levels[:, arm]),
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


def _others(values: np.ndarray, arm: int) -> np.ndarray:
    """The mean of all other arms, for each sitting."""
    return np.delete(values, arm, axis=1).mean(axis=1)


def _beside_others(values: np.ndarray, arm: int) -> np.ndarray:
    return values[:, arm] - _others(values, arm)


def _slope(speed: np.ndarray, own: np.ndarray) -> Interval | None:
    """The least squares' slope of an arm's level on that of the others, with its interval."""
    if len(speed) < MIN_SITTINGS or float(speed.std(ddof=1)) < _MIN_CHANGE:
        return None
    (slope, _), covariance = np.polyfit(speed, own, 1, cov=True)
    reach = t_quantile((1 + CONFIDENCE) / 2, len(speed) - 2) * math.sqrt(covariance[0, 0])
    return Interval(value=float(slope), low=float(slope - reach), high=float(slope + reach))
