"""Plays cells of `cachemark resilience`, several at a time on request.

A cell has a worker, a server and ports of its own, and its callers mostly wait. What one cell still
does to another shows in both as waiting for a CPU: a verdict that can come from that is not kept,
and the cell is played again alone.
"""

import os
import queue
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from cachemark.analysis.resilience.cell import CellName, CellOutcome, Profile
from cachemark.endpoints.clients import ClientSpec
from cachemark.host.temporary import temporary_folder
from cachemark.model.faults import fault_named
from cachemark.runs.resilience.play import CellPlayer
from cachemark.runs.resilience.stored import ResilienceRun
from cachemark.runs.storage.store import lock_run

PlayPart = Callable[[CellPlayer, CellName], CellOutcome]
Begin = Callable[[PlayPart, CellName], Future[CellOutcome]]
# After this many cells of each job, disturbed ones are played again: a stopped run loses few.
_PART_OF_A_JOB = 10


def played(
    cells: Iterable[CellName], play: PlayPart, folder: Path, jobs: int
) -> Generator[CellOutcome]:
    """The outcomes of cells, as they end; files are in a folder.

    If the generator is closed or raises, all processes of the cells have ended.
    """
    if jobs == 1:
        player = CellPlayer(folder)
        for cell in cells:
            yield play(player, cell)
        return
    left = iter(cells)
    with _crew(folder, jobs) as begin:
        while part := list(islice(left, _PART_OF_A_JOB * jobs)):
            again: list[CellName] = []
            for outcome in _side_by_side(part, play, begin, jobs):
                if outcome.disturbed or outcome.failed:
                    again.append(outcome.name)
                else:
                    yield msgspec.structs.replace(outcome, jobs=jobs)
            for cell in again:
                yield begin(play, cell).result()


def _side_by_side(
    cells: Iterable[CellName], play: PlayPart, begin: Begin, jobs: int
) -> Iterator[CellOutcome]:
    waiting = iter(cells)
    playing = {begin(play, cell) for cell in islice(waiting, jobs)}
    while playing:
        ended, playing = wait(playing, return_when=FIRST_COMPLETED)
        playing |= {begin(play, cell) for cell in islice(waiting, len(ended))}
        for one in ended:
            yield one.result()


@contextmanager
def _crew(folder: Path, jobs: int) -> Generator[Begin]:
    """A function that begins a cell with one of `jobs` players, each in a thread."""
    players: list[CellPlayer] = []
    idle: queue.SimpleQueue[CellPlayer] = queue.SimpleQueue()
    for job in range(jobs):
        own = folder / str(job)
        own.mkdir()
        players.append(CellPlayer(own))
        idle.put(players[-1])

    def play_with_one(play: PlayPart, cell: CellName) -> CellOutcome:
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


def play_rest(
    run: ResilienceRun,
    spec_of: Callable[[str], ClientSpec],
    done: Iterable[CellOutcome],
    jobs: int = 1,
) -> Generator[CellOutcome]:
    """Play the cells that have no outcome yet; each is kept before it is given.

    `jobs` is the number of cells side by side. A client that cannot be played is not tried again
    with another fault. Raises UsageError.
    """
    left = run.left(done)
    if not left:
        return
    unsupported: dict[tuple[str, Profile], str] = {}

    def play(player: CellPlayer, cell: CellName) -> CellOutcome:
        if reason := unsupported.get((cell.client, cell.profile), ""):
            return CellOutcome(name=cell, unsupported=reason)
        outcome = player.play(spec_of(cell.client), cell, fault_named(cell.fault))
        if outcome.unsupported:
            unsupported[cell.client, cell.profile] = outcome.unsupported
        return outcome

    lock = lock_run(run.folder)
    try:
        with temporary_folder() as folder, closing(played(left, play, folder, jobs)) as outcomes:
            for outcome in outcomes:
                run.append(outcome)
                yield outcome
    finally:
        os.close(lock)
