"""Whole squares are balanced: for positions, and for what was played before."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.analysis.rounds.order import (
    BEFORE_ROW,
    Square,
    random_square,
    sets_of,
    turns,
    williams,
)


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


def test_each_row_begins_with_a_slice_of_its_last_arm_that_does_not_count() -> None:
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


def test_few_arms_are_one_set_that_begins_with_the_reference() -> None:
    assert sets_of(["a", "b", "c"], ["b"]) == [("b", "a", "c")]
    assert sets_of(["b"], ["b"]) == [("b",)]


@given(st.integers(1, 60), st.integers(1, 3), st.integers(4, 8))
def test_sets_hold_every_arm_once_and_the_reference_always(
    others: int, shared: int, most: int
) -> None:
    reference = [f"r{n}" for n in range(shared)]
    arms = [*reference, *(f"c{n}" for n in range(others))]
    sets = sets_of(arms, reference, most)
    assert all(part[:shared] == tuple(reference) and len(part) <= most for part in sets)
    assert [arm for part in sets for arm in part[shared:]] == arms[shared:]
    sizes = [len(part) for part in sets]
    assert max(sizes) - min(sizes) <= 1
    assert len(sets) == -(-others // (most - shared))


@given(st.lists(st.integers(1, 3), min_size=1, max_size=20))
def test_arms_that_belong_together_stay_together(sizes: list[int]) -> None:
    arms = [(client, server) for client, size in enumerate(sizes) for server in range(size)]
    sets = sets_of([("r", 0), *arms], [("r", 0)], 5, together=lambda arm: arm[0])
    assert all(len(part) <= 5 for part in sets)
    assert sorted(arm for part in sets for arm in part[1:]) == sorted(arms)
    home = Counter(client for part in sets for client in {arm[0] for arm in part[1:]})
    assert set(home.values()) == {1}


def test_arms_that_do_not_fit_beside_the_reference_are_refused() -> None:
    with pytest.raises(ValueError, match="3 arms that belong together do not fit beside 2"):
        sets_of(["r", "s", "x1", "x2", "x3"], ["r", "s"], 4, together=lambda arm: arm[0])
