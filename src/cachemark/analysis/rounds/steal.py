"""CPU time that slices did not get: the hypervisor's share, and waits for a CPU."""

from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.rounds.pairs import ArmFigures, Sittings
from cachemark.model.outcome import Cell
from cachemark.model.rounds import Slices

# A slice is delayed if its threads waited for a CPU for this much of its time more than in the
# median of the arm's slices. To wake a thread takes a moment in every slice.
_DELAYED = 0.02


class ArmSteal(msgspec.Struct, frozen=True, kw_only=True):
    """The slices of an arm, in how many of them CPU time was taken, and which part of their time.

    The part is of all CPUs: no limit of what the arm lost, or a ratio moved, whose other arm lost
    some, too. In `delayed` slices its threads waited for a CPU for longer than usual.
    """

    cell: Cell
    slices: int
    stolen: int
    share: float
    delayed: int = 0


def steal(sittings: Sittings) -> list[ArmSteal]:
    """The CPU time that the arms lost over all sittings; empty if they lost none."""
    slices: dict[Cell, list[ArmFigures]] = {}
    for arms in sittings.values():
        for cell, arm in arms.items():
            slices.setdefault(cell, []).append(arm)
    by_arm = [_of_arm(cell, parts) for cell, parts in slices.items()]
    return by_arm if any(arm.stolen or arm.delayed for arm in by_arm) else []


def _of_arm(cell: Cell, parts: Sequence[ArmFigures]) -> ArmSteal:
    taken = [ns for part in parts for ns in part.slices.steal_ns]
    wall_ns = sum(sum(part.slices.wall_ns) for part in parts)
    return ArmSteal(
        cell=cell,
        slices=len(taken),
        stolen=sum(ns > 0 for ns in taken),
        share=sum(taken) / wall_ns if wall_ns else 0.0,
        delayed=sum(_delayed(part.slices) for part in parts),
    )


def _delayed(slices: Slices) -> int:
    """In how many slices of a sitting threads waited for a CPU for longer than usual."""
    if not slices.queued_ns or min(slices.queued_ns) < 0:
        return 0
    shares = np.asarray(slices.queued_ns) / np.maximum(1, slices.wall_ns)
    return int((shares > np.median(shares) + _DELAYED).sum())
