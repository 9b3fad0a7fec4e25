"""Plays cells of `cachemark resilience`, several at a time if that is asked for.

A cell has a worker, a server and ports of its own, and its callers mostly wait. What one cell still
does to another shows in both as waiting for a CPU: a verdict that can come from that is not kept,
and the cell is played again alone.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from cachemark.checks.resilience.cell import CellName, CellOutcome
from cachemark.checks.resilience.play import CellPlayer

Play = Callable[[CellPlayer, CellName], CellOutcome]


def played(
    cells: Iterable[CellName], play: Play, folder: Path, jobs: int
) -> Generator[CellOutcome]:
    """The outcomes of cells, as they end; files are in a folder.

    If the generator is closed or raises, all processes of the cells have ended.
    """
    again: list[CellName] = []
    if jobs > 1:
        with closing(_side_by_side(cells, play, folder, jobs)) as outcomes:
            for outcome in outcomes:
                if outcome.disturbed or outcome.failed:
                    again.append(outcome.name)
                else:
                    yield msgspec.structs.replace(outcome, jobs=jobs)
        cells = again
    player = CellPlayer(folder)
    for cell in cells:
        yield play(player, cell)


def _side_by_side(
    cells: Iterable[CellName], play: Play, folder: Path, jobs: int
) -> Generator[CellOutcome]:
    waiting = iter(cells)
    with _crew(folder, jobs) as begin:
        playing: set[Future[CellOutcome]] = {begin(play, cell) for cell in islice(waiting, jobs)}
        while playing:
            ended, playing = wait(playing, return_when=FIRST_COMPLETED)
            playing |= {begin(play, cell) for cell in islice(waiting, len(ended))}
            for one in ended:
                yield one.result()


@contextmanager
def _crew(folder: Path, jobs: int) -> Generator[Callable[[Play, CellName], Future[CellOutcome]]]:
    """A function that begins a cell with one of so many players, each in a thread."""
    players: list[CellPlayer] = []
    idle: queue.SimpleQueue[CellPlayer] = queue.SimpleQueue()
    for job in range(jobs):
        own = folder / str(job)
        own.mkdir()
        players.append(CellPlayer(own))
        idle.put(players[-1])

    def play_with_one(play: Play, cell: CellName) -> CellOutcome:
        player = idle.get()
        try:
            return play(player, cell)
        finally:
            idle.put(player)

    with ThreadPoolExecutor(jobs, thread_name_prefix="cell") as pool:
        try:
            yield lambda play, cell: pool.submit(play_with_one, play, cell)
        except BaseException:
            # The pool waits for its threads; without this, until their cells have ended.
            pool.shutdown(wait=False, cancel_futures=True)
            for player in players:
                player.stop()
            raise
