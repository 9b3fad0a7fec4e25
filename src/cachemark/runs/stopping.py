"""Which cells of the next sitting are still played: until the time is over or all is answered.

Questions and looks are fixed before the run. A cell whose questions are all answered leaves after a
look, and gives its time to the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.rounds.contrast import decide_family, look
from cachemark.analysis.rounds.family import Pair, family_of, may_retire
from cachemark.analysis.rounds.looks import LOOKS, StopRule
from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import Plan, Sitting, is_repeat

# A run stops when these are answered; the CPU time needs fewer sittings than the rate.
_DECIDED_BY = "rate"


def stop_rule(experiment: Experiment) -> StopRule:
    """The margin and the looks of an experiment; without looks, it answers once, at its end."""
    settled = experiment.rounds.until == "settled"
    looks = tuple(at for at in LOOKS if at <= experiment.blocks) if settled else ()
    return StopRule(margin=experiment.margin_percent / 100, looks=looks)


def families_of(plan: Plan) -> list[tuple[Pair, ...]]:
    """The pairs that a run is to answer: the clients of each server, or the servers of one client.

    The second arm of the A/A test is in no family.
    """
    reference = plan.experiment.twice
    groups: dict[tuple[str, ...], list[Cell]] = {}
    choices = [cell for cell in plan.playable if not is_repeat(cell)]
    several_clients = len({cell.client for cell in choices}) > 1
    for cell in choices:
        own = cell.server if several_clients else cell.client
        groups.setdefault((cell.workload, cell.load, own), []).append(cell)
    return [
        family_of(group, next((cell for cell in group if cell.client == reference), group[0]))
        for group in groups.values()
        if len(group) > 1
    ]


class Stopping:
    """The stopping rule of one campaign; `began_s` is when it began, on the caller's clock."""

    def __init__(self, plan: Plan, began_s: float) -> None:
        self._rounds = plan.experiment.rounds
        self._rule = stop_rule(plan.experiment)
        self._families = families_of(plan)
        asked = {cell for family in self._families for pair in family for cell in pair}
        self._unasked = frozenset(plan.playable) - asked
        self._needed = {cell.client.partition("#")[0] for cell in plan.playable if is_repeat(cell)}
        self._began_s = began_s
        self._sittings = 0
        self._looked_at: dict[int, frozenset[Cell]] = {}

    def next_sets(
        self, sitting: Sitting, outcomes: Sequence[Outcome], now_s: float
    ) -> list[list[Trial]]:
        """The sets of a sitting that are to be played now; empty for none."""
        if self._out_of_time(now_s):
            return []
        retired = self._retired(sitting.block, outcomes)
        still_open = [
            any(not is_repeat(trial.cell) and trial.cell not in retired for trial in part)
            for part in sitting.sets
        ]
        kept = [
            [trial for trial in part if trial.cell not in retired or self._is_needed(trial.cell)]
            for part, is_open in zip(sitting.sets, still_open, strict=True)
            if is_open
        ]
        self._sittings += bool(kept)
        return kept

    def _out_of_time(self, now_s: float) -> bool:
        """Whether a sitting of the usual length would end too late; the first one is played."""
        if self._rounds.max_s is None or not self._sittings:
            return False
        spent_s = now_s - self._began_s
        return spent_s + spent_s / self._sittings > self._rounds.max_s

    def _retired(self, block: int, outcomes: Sequence[Outcome]) -> frozenset[Cell]:
        """The cells that have left before a block: at the last look, all of theirs was answered."""
        last = max((at for at in self._rule.looks if at <= block), default=0)
        if last not in self._looked_at:
            self._looked_at[last] = self._look(last, outcomes) if last else frozenset()
        return self._looked_at[last]

    def _look(self, count: int, outcomes: Sequence[Outcome]) -> frozenset[Cell]:
        past = [outcome for outcome in outcomes if outcome.trial.block < count]
        looked = look(read_sittings(past, [_DECIDED_BY]), self._rule, final=False)
        left = set(self._unasked)
        for family in self._families:
            left |= may_retire(decide_family(looked, family, _DECIDED_BY))
        return frozenset(left)

    def _is_needed(self, cell: Cell) -> bool:
        """Whether a cell is played for the sake of others: both arms of the A/A test."""
        return cell.client.partition("#")[0] in self._needed
