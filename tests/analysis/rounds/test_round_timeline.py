"""The ratios round by round: where they are in the run, and what stands for many rounds."""

import pytest

from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.round_timeline import round_timelines
from cachemark.model.outcome import Cell, Outcome
from tests.builders.rounds import outcome, sitting

CELLS = [
    Cell(workload="mixed", load="one", server="s", client=client) for client in ("fast", "slow")
]
ARMS = [(cell, cell.client) for cell in CELLS]


def outcomes(squares: int, ratios: list[float]) -> list[Outcome]:
    """A sitting for each ratio of the slow arm's rate to that of the fast one."""
    return [
        outcome(cell, number, CELLS, slices)
        for number, ratio in enumerate(ratios)
        for cell, slices in zip(
            CELLS,
            sitting(2, squares, lambda arm, *_, r=ratio: 1e6 * (r if arm else 1.0), seed=number),
            strict=True,
        )
    ]


def test_each_round_has_its_place_in_its_sitting() -> None:
    (timeline,) = round_timelines(read_sittings(outcomes(2, [0.5, 0.8])), ARMS, "rate")
    assert (timeline.name, timeline.rounds) == ("slow", 1)
    assert [point.place for point in timeline.points] == [
        0.125, 0.375, 0.625, 0.875, 1.125, 1.375, 1.625, 1.875,
    ]  # fmt: skip
    assert [point.ratio for point in timeline.points] == pytest.approx([0.5] * 4 + [0.8] * 4)


def test_many_rounds_become_few_points_at_the_same_places() -> None:
    (timeline,) = round_timelines(read_sittings(outcomes(100, [0.5, 0.8, 0.9])), ARMS, "rate")
    assert timeline.rounds == 5
    assert len(timeline.points) == 120
    for number, ratio in enumerate([0.5, 0.8, 0.9]):
        inside = [of.ratio for of in timeline.points if number < of.place < number + 1]
        assert inside == pytest.approx([ratio] * 40)


def test_a_sitting_without_one_of_them_keeps_its_place() -> None:
    found = [of for of in outcomes(2, [0.5, 0.8, 0.9]) if of.trial.block != 1]
    found.append(outcomes(2, [0.5, 0.8])[2])
    (timeline,) = round_timelines(read_sittings(found), ARMS, "rate")
    assert {int(point.place) for point in timeline.points} == {0, 2}


def test_two_sittings_of_a_block_share_its_place() -> None:
    """A block has several sittings where a group is cut into sets that share reference arms."""
    found = [
        outcome(cell, block, CELLS, slices, part=part)
        for block in range(2)
        for part in range(2)
        for cell, slices in zip(CELLS, sitting(2, 1, lambda *_: 1e6, seed=part), strict=True)
    ]
    (timeline,) = round_timelines(read_sittings(found), ARMS, "rate")
    assert [point.place for point in timeline.points] == [
        0.125, 0.375, 0.625, 0.875, 1.125, 1.375, 1.625, 1.875,
    ]  # fmt: skip


def test_nothing_without_rounds() -> None:
    assert round_timelines({}, ARMS, "rate") == []
    assert round_timelines({}, [], "rate") == []
