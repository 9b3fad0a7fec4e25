"""Which trials of a block are replayed, from the outcomes so far (`until_valid`). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from cachemark.analysis.giving_up import given_up
from cachemark.analysis.verdict.replay import may_be_replayed
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import MOST_TRIES, Plan


def next_replays(plan: Plan, block: int, outcomes: Sequence[Outcome]) -> list[Trial]:
    """The trials of a block to play once more, each cell once; empty if there is none.

    A trial is replayed if the machine spoiled it and every replay of it so far. A cell has at most
    as many replays as it has blocks. Indexes go on after those of the plan.
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
