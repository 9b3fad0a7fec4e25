"""The next part of a run: trials and their replays, steps of searches, or sittings.

The three designs differ here: what follows plays parts, each of one trial or of one sitting.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby

import msgspec

from cachemark.analysis.giving_up import given_up
from cachemark.model.experiment import Load
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import Plan, Sitting
from cachemark.runs.next_trials.rate_steps import RateSteps
from cachemark.runs.next_trials.replays import next_replays, replays_of
from cachemark.runs.next_trials.stopping import Stopping


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


def schedule(plan: Plan, outcomes: list[Outcome]) -> Iterator[Part]:
    """Yields the parts that the outcomes lack, until all is played, found or answered.

    The caller adds what it played to `outcomes` before it asks for the next part.
    """
    if plan.sittings:
        return _sittings(plan, outcomes)
    if plan.experiment.search:
        return _steps(plan, outcomes)
    return _trials(plan, outcomes)


def _trials(plan: Plan, outcomes: list[Outcome]) -> Iterator[Part]:
    """One trial after the other. What the machine spoiled is replayed at its block's end."""
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


def _steps(plan: Plan, outcomes: list[Outcome]) -> Iterator[Part]:
    """A step of every search, then the next step of each, until all of them have ended."""
    steps = RateSteps(plan)
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


def _done(outcomes: list[Outcome]) -> frozenset[int]:
    return frozenset(outcome.trial.index for outcome in outcomes)
