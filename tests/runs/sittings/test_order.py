"""Whole squares are balanced: for positions, and for what was played before."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.runs.sittings.order import BEFORE_ROW, Square, random_square, turns, williams


def neighbours(square: Square) -> Counter[tuple[int, int]]:
    return Counter(pair for row in square for pair in itertools.pairwise(row))


def at_positions(square: Square) -> Counter[tuple[int, int]]:
    return Counter((position, arm) for row in square for position, arm in enumerate(row))


@pytest.mark.parametrize("arms", range(1, 14))
def test_a_square_is_balanced(arms: int) -> None:
    square = williams(arms)
    assert len(square) == (1 if arms == 1 else arms if arms % 2 == 0 else 2 * arms)
    assert all(sorted(row) == list(range(arms)) for row in square)
    times = len(square) // arms
    assert set(at_positions(square).values()) == {times}
    pairs = neighbours(square)
    assert len(pairs) == arms * (arms - 1)
    assert set(pairs.values()) <= {times}


def test_a_square_needs_an_arm() -> None:
    with pytest.raises(ValueError, match="needs an arm"):
        williams(0)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True), st.integers())
def test_a_random_square_is_balanced_too(arms: list[int], seed: int) -> None:
    square = random_square(random.Random(seed), arms)
    assert all(sorted(row) == sorted(arms) for row in square)
    assert len(set(at_positions(square).values())) == 1
    assert len(set(neighbours(square).values())) <= 1
    assert random_square(random.Random(seed), arms) == square


def test_labels_and_rows_are_drawn() -> None:
    order = random.Random(1)
    firsts = Counter(random_square(order, range(4))[0] for _ in range(2000))
    # 4! orders times 4 rows, of which each first row is one of 24 permutations.
    assert len(firsts) == 24
    assert max(firsts.values()) < 2 * min(firsts.values())


def test_each_row_begins_with_its_last_arms_uncounted_slice() -> None:
    square = williams(3)
    played = list(turns(5, square))
    assert {turn.square for turn in played} == {5}
    for number, row in enumerate(square):
        of_row = [turn for turn in played if turn.row == number]
        before = of_row[0]
        assert (before.arm, before.position, before.counted) == (row[-1], BEFORE_ROW, False)
        assert [(t.position, t.arm) for t in of_row if t.counted] == list(enumerate(row))
    # So every arm is once in each row the predecessor of a counted slice.
    predecessors = Counter(a.arm for a, b in itertools.pairwise(played) if b.counted)
    assert set(predecessors.values()) == {len(square)}


def test_an_arm_alone_needs_no_slice_before_it() -> None:
    assert [(turn.arm, turn.counted) for turn in turns(0, williams(1))] == [(0, True)]
