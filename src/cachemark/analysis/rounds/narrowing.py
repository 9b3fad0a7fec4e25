"""How the interval of each arm narrowed, sitting by sitting."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.rounds.comparing import Looked
from cachemark.analysis.rounds.pairs import estimate_pair, first_sittings
from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio after some sittings of each arm."""

    sittings: int
    ratio: Interval


class Narrowing(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of an arm to the winner as the run went on; `name` is that in its question."""

    name: str
    steps: list[Step]


def narrowing(looked: Looked, cell: Cell, name: str, winner: Cell, figure: str) -> Narrowing:
    """The steps from the first sitting on that gave an interval over sittings."""
    steps: list[Step] = []
    for count in range(1, looked.played + 1):
        estimated = estimate_pair(first_sittings(looked.sittings, count), cell, winner, figure)
        if estimated.estimate is not None and estimated.scope == "over":
            ratio = estimated.estimate.ratio(looked.rule.confidence)
            steps.append(Step(sittings=count, ratio=ratio))
    return Narrowing(name=name, steps=steps)


def narrowings(looked: Looked, arms: Sequence[tuple[Cell, str]], figure: str) -> list[Narrowing]:
    """The ratios of all arms but the first, which is the winner."""
    if not arms:
        return []
    (winner, _), *others = arms
    narrowings = [narrowing(looked, cell, name, winner, figure) for cell, name in others]
    return [one for one in narrowings if len(one.steps) > 1]
