"""The next part of a run: trials and their replays, steps of searches, or sittings.

Only here the three designs differ: later code plays parts, each of one trial or of one sitting.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from cachemark.analysis.giving_up import given_up, may_be_replayed
from cachemark.analysis.rate_search import (
    Search,
    begun_search,
    bounds,
    has_ended,
    is_limited,
    searches,
    wants_closed,
)
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment, Load
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import MOST_TRIES, Plan, Sitting
from cachemark.model.search_steps import (
    Base,
    base_of,
    besides_callers,
    closed_step,
    rate_step,
    wider_load,
)
from cachemark.runs.next_trials.stopping import Stopping

_Played = dict[tuple[int, Cell], Search]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Part `number` of at most `total`: a trial alone, or the sets of a sitting.

    A step of a search is played as the first one of its search is, `first`, with another load.
    """

    block: int
    sets: list[list[Trial]]
    number: int
    total: int
    sitting: Sitting | None = None
    is_replay: bool = False
    first: Trial | None = None
    load: Load | None = None


def schedule(plan: Plan, outcomes: list[Outcome], cpus: int) -> Iterator[Part]:
    """Yields the parts that the outcomes lack, until all is played, found or answered.

    `cpus` are those that clients may use on each host. The caller adds what it played to
    `outcomes` before it asks for the next part.
    """
    if plan.sittings:
        return _sittings(plan, outcomes)
    if plan.experiment.search:
        return _steps(plan, outcomes, cpus)
    return _trials(plan, outcomes)


def _trials(plan: Plan, outcomes: list[Outcome]) -> Iterator[Part]:
    """One trial after the other. Spoiled trials are replayed at their block's end."""
    planned, replays = len(plan.trials), len(replays_of(plan, outcomes))
    done = _done(outcomes)
    for block, trials in groupby(plan.trials, lambda trial: trial.block):
        ended = 0
        for trial in trials:
            ended = trial.index + 1
            if trial.index not in done and trial.cell not in given_up(outcomes):
                number, total = ended + replays, planned + replays
                yield Part(block=block, sets=[[trial]], number=number, total=total)
        while again := next_replays(plan, block, outcomes):
            for trial in again:
                replays = trial.index + 1 - planned
                number, total = ended + replays, planned + replays
                yield Part(block=block, sets=[[trial]], number=number, total=total, is_replay=True)


def _steps(plan: Plan, outcomes: list[Outcome], cpus: int) -> Iterator[Part]:
    """A step of every search, then the next step of each, until all of them have ended."""
    steps = RateSteps(plan, cpus)
    while todo := steps.next_steps(outcomes):
        for step in todo:
            index = len(outcomes) - len(plan.skipped)
            yield Part(
                block=step.first.block,
                sets=[[msgspec.structs.replace(step.first, index=index, cell=step.cell)]],
                number=index + 1,
                total=max(index + 1, plan.typical_trials),
                first=step.first,
                load=step.load,
            )


def _sittings(plan: Plan, outcomes: list[Outcome]) -> Iterator[Part]:
    """One sitting after the other, until every question is answered or the time is over."""
    stopping, done = Stopping(plan, time.monotonic(), outcomes), _done(outcomes)
    for sitting in plan.sittings:
        if any(trial.index in done for trial in sitting.trials):
            continue
        lost = given_up(outcomes)
        sets = [
            kept
            for part in stopping.next_sets(sitting, outcomes, time.monotonic())
            if (kept := [trial for trial in part if trial.cell not in lost])
        ]
        if sets:
            yield Part(
                block=sitting.block,
                sets=sets,
                number=sitting.number + 1,
                total=len(plan.sittings),
                sitting=sitting,
            )


def trials_left(plan: Plan, outcomes: list[Outcome]) -> list[Trial]:
    """The trials that are still to be played, without replays; empty for sittings and searches."""
    if plan.sittings or plan.experiment.search:
        return []
    done, lost = _done(outcomes), given_up(outcomes)
    return [one for one in plan.trials if one.index not in done and one.cell not in lost]


def _done(outcomes: list[Outcome]) -> frozenset[int]:
    return frozenset(outcome.trial.index for outcome in outcomes)


class RateStep(msgspec.Struct, frozen=True, kw_only=True):
    """A trial to be played, without its index; its load; the planned trial of its search."""

    cell: Cell
    load: Load
    first: Trial


class RateSteps:
    """The steps of a plan's searches; `cpus` are those that clients may use on each host."""

    def __init__(self, plan: Plan, cpus: int) -> None:
        self._plan = plan
        self._experiment = plan.written
        self._cpus = cpus

    def next_steps(self, outcomes: Sequence[Outcome]) -> list[RateStep]:
        """The next step of every search of the first block that has not ended; empty at the end.

        So all cells play a step before any of them plays its next one.
        """
        played = {(one.block, one.cell): one for one in searches(outcomes, self._experiment)}
        for _, block in groupby(self._plan.trials, lambda trial: trial.block):
            steps = [step for first in block for step in self._next(first, played)]
            if steps:
                return steps
        return []

    def _next(self, first: Trial, played: _Played) -> Iterator[RateStep]:
        base = base_of(self._experiment, self._plan.load(first.cell))
        if base is None:
            return
        search = _of_base(first, base, played)
        load = _next_load(search, base.load)
        if load is None and is_limited(search):
            load = self._next_with_more_threads(first, base.written, played)
        if load is not None:
            cell = msgspec.structs.replace(first.cell, load=load.name)
            yield RateStep(cell=cell, load=load, first=first)

    def _next_with_more_threads(self, first: Trial, load: Load, played: _Played) -> Load | None:
        """The next step of a search with more threads, after its own client was the limit."""
        cell = msgspec.structs.replace(first.cell, load=load.name)
        begun = (
            one.threads for one in played.values() if (one.block, one.after) == (first.block, cell)
        )
        threads = next(begun, 0) or more_threads(self._experiment, cell, load, self._cpus)
        if not threads:
            return None
        wider = wider_load(load, threads)
        return _next_load(_of_base(first, Base(wider, load), played), wider)


def more_threads(experiment: Experiment, cell: Cell, load: Load, cpus: int) -> int:
    """The threads of each process that use all CPUs; 0 if more threads would not help.

    Only the native client plays the same work by any number of threads. Connections that the load
    names stay as many, in equal parts. An experiment over numbers of callers plays no others.
    """
    if load.measure or not parse_client_name(cell.client).is_native:
        return 0
    if sum(besides_callers(other) == besides_callers(load) for other in experiment.loads) > 1:
        return 0
    most = cpus // load.processes
    if load.connections is not None:
        shares = (n for n in range(min(most, load.connections), 0, -1) if not load.connections % n)
        most = next(shares, 0)
    return most if most > load.threads else 0


def _of_base(first: Trial, base: Base, played: _Played) -> Search:
    """The search of a load, which may not have begun."""
    new = begun_search(first.cell, first.block, base)
    return played.get((new.block, new.cell), new)


def _next_load(search: Search, load: Load) -> Load | None:
    if wants_closed(search):
        return closed_step(load)
    rate = bounds(search).next_rate
    return None if rate is None or has_ended(search) else rate_step(load, rate)


def next_replays(plan: Plan, block: int, outcomes: Sequence[Outcome]) -> list[Trial]:
    """The trials of a block to play once more, each cell once; empty if there is none.

    A trial is replayed if the machine spoiled it and every replay of it so far. A cell has at most
    as many replays as it has blocks. Indexes follow the plan's.
    """
    wanted = plan.experiment.until_valid
    if wanted is None:
        return []
    replayed = replays_of(plan, outcomes)
    replays = Counter(one.trial.cell for one in replayed)
    lost = given_up(outcomes)
    again = [
        trial
        for trial in plan.trials
        if trial.block == block
        and trial.cell not in lost
        and replays[trial.cell] < (MOST_TRIES - 1) * wanted
        and _is_spoiled(trial, outcomes)
    ]
    first = len(plan.trials) + len(replayed)
    return [msgspec.structs.replace(trial, index=first + n) for n, trial in enumerate(again)]


def replays_of(plan: Plan, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes that are replays."""
    return [one for one in outcomes if len(plan.trials) <= one.trial.index < plan.index_end]


def _is_spoiled(trial: Trial, outcomes: Sequence[Outcome]) -> bool:
    tries = [
        one for one in outcomes if (one.trial.block, one.trial.cell) == (trial.block, trial.cell)
    ]
    return bool(tries) and all(map(may_be_replayed, tries))
