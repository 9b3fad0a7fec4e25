"""Which cells of the next sitting are still played: until the time is over or all is answered.

Questions and looks are fixed before the run. A cell whose questions are all answered leaves after a
look, and gives its time to the others.
"""

from collections import Counter
from collections.abc import Sequence

from cachemark.analysis.rounds.comparing import answer_questions, look
from cachemark.analysis.rounds.family import may_retire
from cachemark.analysis.rounds.pairs import (
    PRIMARY_FIGURES,
    ROUND_FIGURES,
    primary_figure,
    read_sittings,
)
from cachemark.analysis.rounds.questions import asked, stop_rule
from cachemark.analysis.rounds.ranking import undecided_firsts
from cachemark.model.client_name import without_repeat
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import Plan, Sitting, is_repeat


class Stopping:
    """The stopping rule of one run; `now_s` is the time of the caller's clock.

    `played` are the outcomes of a resumed run: their sittings and their time count.
    """

    def __init__(self, plan: Plan, now_s: float, played: Sequence[Outcome] = ()) -> None:
        self._plan = plan
        self._rounds = plan.experiment.rounds
        self._rule = stop_rule(plan.experiment)
        questions = asked(plan.experiment, plan.playable)
        self._questions = [of for of in questions if of.compares]
        self._cells = frozenset(cell for cell in plan.playable if not is_repeat(cell))
        self._needed = {_client_of(cell) for cell in plan.playable if is_repeat(cell)}
        self._shared = shared_cells(plan)
        self._in_block = Counter(sitting.block for sitting in plan.sittings)
        times_s = _sitting_times_s(played)
        self._began_s = now_s - sum(times_s.values())
        self._sittings = len(times_s)
        self._last_block: int | None = None
        self._looked_at: dict[int, frozenset[Cell]] = {}

    def next_sets(
        self, sitting: Sitting, outcomes: Sequence[Outcome], now_s: float
    ) -> list[list[Trial]]:
        """The sets of a sitting that are to be played now; empty for none."""
        if self._out_of_time(sitting, now_s):
            return []
        retired = self._retired(sitting.block, outcomes)
        still_open = self._open_sets(sitting, retired)
        sets = [
            [trial for trial in part if trial.cell not in retired or self._is_needed(trial.cell)]
            for part, is_open in zip(sitting.sets, still_open, strict=True)
            if is_open
        ]
        self._sittings += bool(sets)
        return sets

    def _open_sets(self, sitting: Sitting, retired: frozenset[Cell]) -> list[bool]:
        """Which sets have a cell of their own that is open.

        References are in several sets. If only references are open, all of their sets are open.
        """
        left = self._cells - retired
        counted = left - self._shared or left
        return [any(trial.cell in counted for trial in part) for part in sitting.sets]

    def _out_of_time(self, sitting: Sitting, now_s: float) -> bool:
        """Whether sittings of the usual length would end too late; the first one is played.

        A block is played whole or not at all, so that every question has the same number of
        sittings. Only of the first block, as many are played as there is time for.
        """
        if self._rounds.max_s is None or not self._sittings:
            return False
        if sitting.block and sitting.block == self._last_block:
            return False
        spent_s = now_s - self._began_s
        coming = self._in_block[sitting.block] if sitting.block else 1
        if spent_s * (1 + coming / self._sittings) > self._rounds.max_s:
            return True
        self._last_block = sitting.block
        return False

    def _retired(self, block: int, outcomes: Sequence[Outcome]) -> frozenset[Cell]:
        """The cells that have left before a block: at the last look, all of theirs was answered."""
        last = max((at for at in self._rule.looks if at <= block), default=0)
        if last not in self._looked_at:
            self._looked_at[last] = self._look(last, outcomes) if last else frozenset()
        return self._looked_at[last]

    def _look(self, count: int, outcomes: Sequence[Outcome]) -> frozenset[Cell]:
        past = [outcome for outcome in outcomes if outcome.trial.block < count]
        looked = look(read_sittings(past, PRIMARY_FIGURES), self._rule, final=False)
        left = set(self._cells)
        tested = {name: answer_questions(looked, self._questions, name) for name in PRIMARY_FIGURES}
        for question in self._questions:
            is_closed = self._plan.load(question.cells[0]).schedule == "closed"
            figure = primary_figure(closed=is_closed)
            decisions = {pair: tested[figure].pairs[pair] for pair in question.family}
            errors = tested[figure].errors
            needed = undecided_firsts(looked, question, ROUND_FIGURES[figure], errors)
            left -= set(question.cells) - may_retire(decisions, needed)
        return frozenset(left)

    def _is_needed(self, cell: Cell) -> bool:
        """Whether a cell is played for the sake of others: the A/A test's arms, and references."""
        return _client_of(cell) in self._needed or cell in self._shared


def shared_cells(plan: Plan) -> frozenset[Cell]:
    """The references: cells that several sets of a block have."""
    block = [sitting.trials for sitting in plan.sittings if sitting.block == 0]
    times = Counter(trial.cell for trials in block for trial in trials)
    return frozenset(cell for cell, count in times.items() if count > 1)


def _sitting_times_s(outcomes: Sequence[Outcome]) -> dict[int | None, float]:
    times_s: dict[int | None, float] = {}
    for outcome in outcomes:
        if outcome.rounds is not None:
            number = outcome.trial.sitting
            times_s[number] = max(times_s.get(number, 0.0), outcome.wall_ms / 1e3)
    return times_s


def _client_of(cell: Cell) -> str:
    """The client as the experiment names it, also of its repetition."""
    return without_repeat(cell.client)
