"""The order in which the arms of a sitting play: Williams squares, relabelled at random.

A row of a square plays every arm once; it is one round. Over a square, every arm is equally often
at every position, and every arm comes equally often directly after every other arm. So neither a
slow drift nor what one client leaves behind for the next one favours an arm. This holds for whole
squares only: an arm may leave the sitting at the end of a square.

E. J. Williams, Australian Journal of Scientific Research A 2 (1949).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

import msgspec

# A square of n arms has n² slices, or 2n² if n is odd. More arms make squares too long to repeat.
MAX_ARMS = 8
# The position of the slice that is played before a row and not counted.
BEFORE_ROW = -1

Square = tuple[tuple[int, ...], ...]
Arm = TypeVar("Arm", bound=Hashable)


class Turn(msgspec.Struct, frozen=True):
    """One slice to be played: its place in the order, whose turn it is, and whether it counts.

    `square`, `row` and `position` are counted from 0, each within the one before it. A slice that
    does not count has the position BEFORE_ROW. `arm` is the number of the arm in its set.
    """

    square: int
    row: int
    position: int
    arm: int
    counted: bool


def williams(arms: int) -> Square:
    """A Williams square for arms 0 … n−1: n rows if n is even, 2n if it is odd.

    The first row is 0, 1, n−1, 2, n−2, …: the differences of neighbours are all different. Each
    further row adds 1 modulo n. If n is odd, the mirrored rows complete the balance.
    """
    if arms < 1:
        raise ValueError("a square needs an arm")
    first = [(step + 1) // 2 if step % 2 else (arms - step // 2) % arms for step in range(arms)]
    rows = [tuple((arm + shift) % arms for arm in first) for shift in range(arms)]
    if arms % 2 and arms > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return tuple(rows)


def random_square(order: random.Random, arms: Sequence[int]) -> Square:
    """A Williams square of these arms: labels and the order of the rows are drawn at random.

    `arms` are numbers in the set, without those that have retired. Rows may change places, because
    balance of neighbours concerns each row by itself.
    """
    labels = list(arms)
    order.shuffle(labels)
    rows = [tuple(labels[place] for place in row) for row in williams(len(labels))]
    order.shuffle(rows)
    return tuple(rows)


def turns(number: int, square: Square) -> Iterator[Turn]:
    """The slices of a square in the order of play; `number` is the square's number in its sitting.

    Each row is preceded by a slice of its own last arm that does not count. So the first counted
    slice of a row also has a predecessor from the same row.
    """
    for row, arms in enumerate(square):
        if len(arms) > 1:
            yield Turn(number, row, BEFORE_ROW, arms[-1], False)
        for position, arm in enumerate(arms):
            yield Turn(number, row, position, arm, True)


def sets_of(
    arms: Sequence[Arm],
    reference: Sequence[Arm],
    max_arms: int = MAX_ARMS,
    together: Callable[[Arm], Hashable] = lambda arm: arm,
) -> list[tuple[Arm, ...]]:
    """Cut the arms into sets that fit into one sitting; every set begins with the reference arms.

    Arms of different sets are compared through the reference. Arms for which `together` returns
    the same key stay in one set, such as one client on several servers. The sets have about equal
    sizes. Raises ValueError if arms that belong together do not fit beside the reference.
    """
    shared = [arm for arm in arms if arm in set(reference)]
    units: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        if arm not in shared:
            units.setdefault(together(arm), []).append(arm)
    room = max_arms - len(shared)
    largest = max(map(len, units.values()), default=0)
    if largest > room:
        raise ValueError(
            f"{largest} arms that belong together do not fit beside {len(shared)} reference arms"
            f" into a set of {max_arms}"
        )
    found = _fill(list(units.values()), room)
    return [(*shared, *part) for part in found] or [tuple(shared)]


def _fill(units: Sequence[list[Arm]], room: int) -> list[list[Arm]]:
    """Distribute the units over as few parts of about equal size as hold them, in their order."""
    total = sum(map(len, units))
    parts = -(-total // max(room, 1))
    filled = _filled(units, room, parts)
    # Units that do not fill a part to the brim may need more parts; one part for each always holds.
    while len(filled) > parts:
        parts += 1
        filled = _filled(units, room, parts)
    return filled


def _filled(units: Sequence[list[Arm]], room: int, parts: int) -> list[list[Arm]]:
    """One part after the other, each closed when it has its share of all arms."""
    total = sum(map(len, units))
    filled: list[list[Arm]] = []
    placed = 0
    for unit in units:
        share_reached = placed >= round(total * len(filled) / parts)
        if not filled or share_reached or len(filled[-1]) + len(unit) > room:
            filled.append([])
        filled[-1].extend(unit)
        placed += len(unit)
    return filled
