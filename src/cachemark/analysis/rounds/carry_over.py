"""Carry-over: the effect of an arm on the slice after its own, with an interval.

Balanced squares give every arm the same predecessors, so that their traces (full caches, garbage to
collect, a busy server) affect all arms alike. One thing remains: no arm comes after itself. An arm
that slows all others has them as successors, and not itself. So the effect is estimated, and with
it how far it moves the comparison.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs, pooled_within
from cachemark.analysis.rounds.looks import MIN_SITTINGS
from cachemark.analysis.rounds.pairs import ArmFigures, Sittings
from cachemark.analysis.rounds.sitting import column
from cachemark.analysis.statistics import ALPHA, CONFIDENCE, Interval, Scope, holm
from cachemark.model.outcome import Cell

# Two arms always follow each other: the effects of an arm and of its predecessor cannot be
# separated.
_MIN_ARMS = 3
SliceValues = NDArray[np.float64]


class CarryOver(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of an arm on its successors.

    - `successor`: the rate of the slices after this arm, relative to those after the other arms.
      `p_holm` is corrected over the arms of the set.
    - `moved`: by which factor the predecessors of this arm's own slices change its rate.
    - `idle_cores_during`: CPU time of all other arms during this arm's slices, per wall time;
      `idle_cores_after`: the same in the slices that follow this arm. None: not available.
    """

    cell: Cell
    successor: Interval
    p_holm: float | None
    moved: float
    idle_cores_during: float | None
    idle_cores_after: float | None


class CarryOverTable(msgspec.Struct, frozen=True, kw_only=True):
    """The carry-over of the arms of a set, over `sittings` sittings.

    `scope` is `within` if there are too few sittings for an interval over them. `moves` is the
    largest factor by which carry-over moves a ratio of two arms of this set, as estimated, and
    `moves_at_most` its upper limit: with 95 %, no pair is moved further. None with too few
    sittings. `shown`: the effect of at least one arm is significant.
    """

    arms: list[CarryOver]
    sittings: int
    scope: Scope
    moves: float
    moves_at_most: float | None = None
    shown: bool


class _Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The fit of one sitting: ln of each arm's effect on its successor, and of others on itself."""

    effects: list[LogEstimate]
    moved: list[float]


def carry_over(sittings: Sittings) -> CarryOverTable | None:
    """The carry-over of one set's arms; None if it is unknown.

    Only the sittings in which all arms of the set are valid are used. They must have at least three
    arms, and two whole rows for each of them.
    """
    cells = max((list(arms) for arms in sittings.values()), key=len, default=[])
    whole = [arms for arms in sittings.values() if set(arms) == set(cells)]
    fits = [(arms, fit) for arms in whole if (fit := _fit([arms[cell] for cell in cells]))]
    if not fits:
        return None
    count = len(fits)
    scope: Scope = "over" if count >= MIN_SITTINGS else "within"
    combined = [_combine([fit.effects[arm] for _, fit in fits]) for arm in range(len(cells))]
    moved = [float(np.mean([fit.moved[arm] for _, fit in fits])) for arm in range(len(cells))]
    ratios = [effect.ratio(CONFIDENCE) for effect in combined]
    corrected = holm({arm: ratio.p for arm, ratio in enumerate(ratios) if ratio.p is not None})
    used = [arms for arms, _ in fits]
    return CarryOverTable(
        arms=[
            CarryOver(
                cell=cell,
                successor=ratios[arm],
                p_holm=corrected.get(arm),
                moved=math.exp(moved[arm]),
                idle_cores_during=_idle_cores(used, during=cell),
                idle_cores_after=_idle_cores(used, after=cell),
            )
            for arm, cell in enumerate(cells)
        ],
        sittings=count,
        scope=scope,
        moves=math.exp(max(moved) - min(moved)),
        moves_at_most=_at_most([fit.moved for _, fit in fits]) if scope == "over" else None,
        shown=any(p < ALPHA for p in corrected.values()),
    )


def _at_most(moved: Sequence[Sequence[float]]) -> float:
    """The far end of the intervals of all pairs, which hold together (Bonferroni)."""
    pairs = list(combinations(range(len(moved[0])), 2))
    confidence = 1 - ALPHA / len(pairs)
    ratios = [
        mean_of_logs([of[one] - of[two] for of in moved]).ratio(confidence) for one, two in pairs
    ]
    ends = [(of.low or of.value, of.high or of.value) for of in ratios]
    return max(max(high, 1 / low) for low, high in ends)


def _combine(effects: Sequence[LogEstimate]) -> LogEstimate:
    """Over sittings if there are enough, else within them."""
    if len(effects) >= MIN_SITTINGS:
        return mean_of_logs([effect.value for effect in effects])
    return pooled_within(effects)


def _fit(arms: Sequence[ArmFigures]) -> _Fit | None:
    """ln rate ~ row + arm + predecessor, by least squares over the whole rows of a sitting.

    In a whole row every arm has one slice, and every arm is the predecessor of one. So the row's
    level is taken out by its mean, and the effects of all arms have the sum 0.
    """
    count = len(arms)
    rows = _whole_rows(arms)
    if count < _MIN_ARMS or len(rows) < 2 * count:
        return None
    number = {arm.arm: place for place, arm in enumerate(arms)}
    before = np.array([[number[of] for of in row[1]] for row in rows])
    logs = np.array([row[0] for row in rows])
    logs -= logs.mean(axis=1, keepdims=True)
    follows = np.zeros((*before.shape, count))
    np.put_along_axis(follows, before[..., None], 1, axis=2)
    own = np.broadcast_to(np.eye(count), follows.shape)
    # Both groups of columns are centred: their sums would be the constant.
    design = np.concatenate([own, follows], axis=2).reshape(-1, 2 * count) - 1 / count
    normal = design.T @ design
    inverse = np.linalg.pinv(normal, rcond=1e-9, hermitian=True).astype(np.float64)
    target = logs.reshape(-1)
    solution = inverse @ (design.T @ target)
    effects = solution[count:]
    degrees = len(target) - len(rows) - 2 * (count - 1)
    residuals = target - design @ solution
    errors = np.sqrt(np.diag(inverse) * (residuals @ residuals) / degrees)[count:]
    # The sum of all effects is 0, so the mean of the others is −effect / (n − 1).
    scale = count / (count - 1)
    return _Fit(
        effects=[
            LogEstimate(
                value=scale * float(value), error=scale * float(error), degrees_of_freedom=degrees
            )
            for value, error in zip(effects, errors, strict=True)
        ],
        moved=[float(effects[before[:, arm]].mean()) for arm in range(count)],
    )


def _whole_rows(arms: Sequence[ArmFigures]) -> list[tuple[list[float], list[int]]]:
    """The rows in which every arm has a slice with operations: their log rates and predecessors."""
    rows: dict[tuple[int, int], tuple[list[float], list[int]]] = {}
    for arm in arms:
        of = arm.slices
        for index, place in enumerate(zip(of.square, of.row, strict=True)):
            if of.ops[index] and of.elapsed_ns[index]:
                logs, before = rows.setdefault(place, ([], []))
                logs.append(math.log(of.ops[index] / of.elapsed_ns[index]))
                before.append(of.predecessor[index])
    present = {arm.arm for arm in arms}
    return [row for row in rows.values() if len(row[0]) == len(arms) and set(row[1]) == present]


def _idle_cores(
    sittings: Sequence[Mapping[Cell, ArmFigures]],
    *,
    during: Cell | None = None,
    after: Cell | None = None,
) -> float | None:
    """CPU time of idle arms per wall time, in the slices of an arm or in those that follow it."""
    idle_ns = wall_ns = 0.0
    for arms in sittings:
        for cell, arm in arms.items():
            chosen = np.full(len(arm.slices.ops), cell == during)
            if after is not None:
                chosen = column(arm.slices.predecessor) == arms[after].arm
            spent = column(arm.slices.idle_cpu_ns)
            if len(spent) != len(chosen) or (spent < 0).any():
                return None
            idle_ns += float(spent[chosen].sum())
            wall_ns += float(column(arm.slices.wall_ns)[chosen].sum())
    return idle_ns / wall_ns if wall_ns else None
