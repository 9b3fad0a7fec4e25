"""Which trials a search for the highest rate plays next, from the outcomes so far. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from cachemark.analysis.rate_search import Search, bounds, searches, wants_closed
from cachemark.model.experiment import Load
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import Plan
from cachemark.model.search_steps import MAX_TRIALS, base_load, rate_step

_Played = dict[tuple[int, Cell], Search]


class RateStep(msgspec.Struct, frozen=True, kw_only=True):
    """A trial to be played, without its index; its load; the planned trial of its search."""

    cell: Cell
    load: Load
    first: Trial


class RateSteps:
    """The steps of a plan's searches."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._experiment = plan.written

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
        closed = self._plan.load(first.cell)
        base = base_load(self._experiment, closed)
        if base is None:
            return
        cell = msgspec.structs.replace(first.cell, load=base.name)
        search = played.get((first.block, cell), Search(cell=cell, block=first.block))
        load = _next_load(search, closed, base)
        if load is not None:
            cell = msgspec.structs.replace(first.cell, load=load.name)
            yield RateStep(cell=cell, load=load, first=first)


def _next_load(search: Search, closed: Load, base: Load) -> Load | None:
    if wants_closed(search):
        return closed
    rate = bounds(search).next_rate
    if rate is None or len(search.plays) >= MAX_TRIALS - len(search.closed):
        return None
    return rate_step(base, rate)
