"""The order in which the arms of a sitting play: Williams squares, relabelled at random.

A row of a square plays every arm once; it is one round. Over a square, every arm is equally often
at every position, and every arm comes equally often directly after every other arm. So neither a
slow drift nor what one client leaves behind for the next one favours an arm. This holds for whole
squares only: an arm may leave the sitting at the end of a square.

E. J. Williams, Australian Journal of Scientific Research A 2 (1949).
"""

import random
from collections.abc import Iterator, Sequence

import msgspec

# The position of the slice that is played before a row and not counted.
BEFORE_ROW = -1

Square = tuple[tuple[int, ...], ...]


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


def squares_for(measure_ms: int, slice_ms: float, arms: int) -> int:
    """The number of squares that give each arm about `measure_ms` of slices; at least one."""
    return max(1, round(measure_ms / (len(williams(arms)) * slice_ms)))


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
