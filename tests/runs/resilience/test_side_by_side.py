"""Cells side by side: each is played once, and again alone if it was disturbed; a stop ends all."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from cachemark.analysis.resilience.cell import CellName, CellOutcome
from cachemark.runs.resilience.play import CellPlayer, CellStoppedError
from cachemark.runs.resilience.side_by_side import played

CELLS = [
    CellName(client=f"x/{number}", profile="common", fault="frozen-1s", sitting=1)
    for number in range(8)
]
DEADLINE_S = 60.0


def test_so_many_are_played_side_by_side(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def play(_: CellPlayer, cell: CellName) -> CellOutcome:
        together.wait(DEADLINE_S)  # raises unless four are here
        return CellOutcome(name=cell)

    outcomes = list(played(CELLS, play, tmp_path, jobs=4))
    assert sorted(one.name.client for one in outcomes) == [cell.client for cell in CELLS]
    assert {one.jobs for one in outcomes} == {4}


def test_a_disturbed_or_failed_cell_is_played_again_alone(tmp_path: Path) -> None:
    plays: Counter[str] = Counter()

    def play(_: CellPlayer, cell: CellName) -> CellOutcome:
        plays[cell.client] += 1
        alone = plays[cell.client] > 1
        return CellOutcome(
            name=cell,
            disturbed="a pause" if cell.client == "x/1" and not alone else "",
            failed="no answer" if cell.client == "x/2" and not alone else "",
        )

    outcomes = {one.name.client: one for one in played(CELLS, play, tmp_path, jobs=3)}
    assert len(outcomes) == len(CELLS)
    assert plays["x/1"] == plays["x/2"] == 2
    assert sum(plays.values()) == len(CELLS) + 2
    assert {name for name, one in outcomes.items() if one.jobs == 1} == {"x/1", "x/2"}
    assert not any(one.disturbed or one.failed for one in outcomes.values())


def test_one_that_is_disturbed_alone_keeps_its_doubt(tmp_path: Path) -> None:
    def play(_: CellPlayer, cell: CellName) -> CellOutcome:
        return CellOutcome(name=cell, disturbed="x")

    outcomes = list(played(CELLS[:1], play, tmp_path, jobs=1))
    assert [one.disturbed for one in outcomes] == ["x"]


def test_a_stop_ends_all_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread gets Ctrl-C while the others are in the middle of their cells."""
    stopped = threading.Event()

    def stop(_: CellPlayer) -> None:
        stopped.set()

    monkeypatch.setattr(CellPlayer, "stop", stop)

    def play(_: CellPlayer, cell: CellName) -> CellOutcome:
        if cell is CELLS[0]:
            return CellOutcome(name=cell)
        assert stopped.wait(DEADLINE_S)
        raise CellStoppedError

    outcomes = played(CELLS, play, tmp_path, jobs=3)
    assert next(outcomes).name == CELLS[0]
    outcomes.close()
    assert stopped.is_set()
