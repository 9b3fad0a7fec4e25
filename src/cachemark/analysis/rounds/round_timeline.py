"""The ratio of each arm to the winner, round by round: what the intervals are made of."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.rounds.pairs import Sittings
from cachemark.analysis.rounds.sitting import Column, SliceFigure, round_log_ratios
from cachemark.model.outcome import Cell

# More points of a line than this cannot be seen apart.
_MAX_POINTS = 120


class CoursePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The median ratio of a few rounds in a row.

    `place` counts blocks from 0, as a run counts its sittings; its fraction is how much of the
    block's rounds were over.
    """

    place: float
    ratio: float


class RoundTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of an arm to the winner as the run went on; `name` is that in its question.

    `rounds` is how many rounds a point stands for, at most.
    """

    name: str
    rounds: int
    points: list[CoursePoint]


def round_timelines(
    sittings: Sittings, arms: Sequence[tuple[Cell, str]], figure: SliceFigure
) -> list[RoundTimeline]:
    """The ratios of all arms but the first, the winner, from the sittings that both played."""
    if not arms:
        return []
    (winner, _), *others = arms
    timelines = [_timeline(sittings, cell, name, winner, figure) for cell, name in others]
    return [timeline for timeline in timelines if len(timeline.points) > 1]


def _timeline(
    sittings: Sittings, cell: Cell, name: str, winner: Cell, figure: SliceFigure
) -> RoundTimeline:
    # The two may meet in several sittings of a block: in each set that both are a part of.
    met: dict[int, list[Column]] = {}
    for key, arms in sittings.items():
        if cell in arms and winner in arms:
            of_sitting = round_log_ratios(arms[cell].slices, arms[winner].slices, figure)
            met.setdefault(key.block, []).append(of_sitting)
    logs = {block: np.concatenate(parts) for block, parts in met.items()}
    rounds = math.ceil(sum(map(len, logs.values())) / _MAX_POINTS) or 1
    points = [
        CoursePoint(
            place=block + (start + len(batch) / 2) / len(of),
            ratio=math.exp(float(np.median(batch))),
        )
        for block, of in sorted(logs.items())
        for start in range(0, len(of), rounds)
        if np.isfinite(np.median(batch := of[start : start + rounds]))
    ]
    return RoundTimeline(name=name, rounds=rounds, points=points)
