"""A display that also writes events: at the ends of trials, and at most twice a second between."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager

from cachemark.analysis.rounds.answers import Place
from cachemark.analysis.statistics import FIGURES, withholds
from cachemark.model.events import (
    MAX_NAME,
    MAX_REASON,
    AnswersTold,
    Ended,
    Position,
    Ranked,
    RankedPlace,
    Refused,
    Started,
    TrialEnded,
    fitting,
)
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import Plan, Sitting
from cachemark.report.absences import absence_text, find_absences
from cachemark.report.cells import CELL_FIELDS, cell_title
from cachemark.report.rounds import QuestionStandings, ordered_places, standing_lines
from cachemark.runs.events.log import EventLog, own_identity
from cachemark.runs.stage import Display
from cachemark.runs.storage.store import Run

_INTERVAL_S = 0.5
_FIGURES = {
    "rate": "rate",
    "p50": "p50",
    "p99": "p99",
    "client_cpu_us": "client-cpu",
    "server_cpu_us": "server-cpu",
    "server_rss": "server-rss",
}
# This many fit into any line.
_PLACES_IN_A_LINE = 6
RankOf = Callable[[list[Outcome]], QuestionStandings]


@contextmanager
def logged(display: AbstractContextManager[Display], run: Run, rank: RankOf) -> Generator[Display]:
    """A display that shows what `display` shows, and writes it as events of the run.

    Enter it with the run's lock.
    """
    log = EventLog(run.folder)
    with display as shown:
        logging, interrupted = LoggedDisplay(shown, log, rank), True
        try:
            yield logging
            interrupted = False
        finally:
            if logging.has_started:
                log.write(Ended(interrupted=interrupted))


class LoggedDisplay(Display):
    """Passes everything on to a display, and writes what a page shows."""

    def __init__(self, display: Display, log: EventLog, rank: RankOf) -> None:
        self._display, self._log, self._rank = display, log, rank
        self.has_started = False
        self._number = self._total = 0
        self._written_at = 0.0

    def planned(self, plan: Plan) -> None:
        self._display.planned(plan)
        pid, start = own_identity()
        unit, parts = ("sitting", plan.sittings) if plan.sittings else ("trial", plan.trials)
        closed = all(load.schedule == "closed" for load in plan.experiment.loads)
        self._log.write(
            Started(pid=pid, process_start=start, unit=unit, total=len(parts), ranks_by_rate=closed)
        )
        self.has_started = True

    def auditing(self, what: str) -> None:
        self._display.auditing(what)
        self._position(what=what)

    def refused(self, plan: Plan) -> None:
        self._display.refused(plan)
        lines = [absence_text(one) for one in find_absences(plan.skipped, plan.cells)]
        self._log.write(Refused(lines=fitting(lines)))

    def begins(self, trial: Trial, number: int, total: int, *, is_replay: bool = False) -> None:
        self._display.begins(trial, number, total, is_replay=is_replay)
        self._number, self._total = number, total
        self._position(what=cell_title(trial.cell), at_once=True)

    def ops(self, ops: int) -> None:
        """Operations so far: the window is being measured, so nothing is written."""
        self._display.ops(ops)

    def ends(self, outcome: Outcome) -> None:
        self._display.ends(outcome)
        self._log.write(trial_ended(outcome))

    def sitting(self, sitting: Sitting, number: int, total: int) -> None:
        self._display.sitting(sitting, number, total)
        self._number, self._total = number, total
        self._position(what=f"{len(sitting.trials)} clients", at_once=True)

    def doing(self, what: str) -> None:
        self._display.doing(what)
        self._position(what=what)

    def played(self, part: float) -> None:
        self._display.played(part)
        self._position(what="in turns", part=part)

    def sitting_ended(self) -> None:
        self._display.sitting_ended()

    def answers(self, outcomes: list[Outcome]) -> None:
        self._display.answers(outcomes)
        standing = self._rank(outcomes)
        for event in ranked(standing):
            self._log.write(event)
        self._log.write(AnswersTold(lines=fitting(standing_lines(standing))))

    def _position(self, *, what: str, part: float = 0.0, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self._written_at >= _INTERVAL_S:
            self._written_at = now
            self._log.write(
                Position(
                    number=self._number,
                    total=self._total,
                    what=what[:MAX_NAME],
                    part=round(part, 3),
                )
            )


def trial_ended(outcome: Outcome) -> TrialEnded:
    """The figures of a trial for its page."""
    valid = outcome.verdict == "VALID" and outcome.measure is not None
    reason = outcome.reason or "; ".join(outcome.reasons)
    noise, measure = outcome.noise, outcome.measure
    figures = {
        field: FIGURES[name].of(outcome)
        for field, name in _FIGURES.items()
        if valid and not withholds(outcome, FIGURES[name])
    }
    return TrialEnded(
        cell=_cell_names(outcome.trial.cell),
        block=outcome.trial.block,
        verdict=outcome.verdict or outcome.state,
        reason="" if valid else reason[:MAX_REASON],
        errors=sum(sum(one.errors.values()) for one in measure.operations.values())
        if measure
        else 0,
        steal_percent=noise.steal_percent if noise else None,
        foreign_cpu_percent=noise.foreign_cpu_percent if noise else None,
        **figures,
    )


def ranked(standing: QuestionStandings) -> Iterator[Ranked]:
    """The rankings as events."""
    for question, ranking in standing:
        first = ranking.places[0]
        places = [_place(place, first) for place in ordered_places(ranking)]
        title = " · ".join((question.common, question.workload, question.load))
        for at in range(0, len(places), _PLACES_IN_A_LINE):
            part = places[at : at + _PLACES_IN_A_LINE]
            yield Ranked(
                title=title[:MAX_NAME], by_rate=ranking.figure == "rate", at=at, places=part
            )


def _place(place: Place, first: Place) -> RankedPlace:
    ratio = place.to_winner.ratio if place.to_winner else None
    return RankedPlace(
        name=place.name[:MAX_NAME],
        cell=_cell_names(place.cell),
        value=place.value,
        is_first=place is first,
        low=first.value * ratio.low if ratio and ratio.low is not None else None,
        high=first.value * ratio.high if ratio and ratio.high is not None else None,
    )


def _cell_names(cell: Cell) -> list[str]:
    return [getattr(cell, field)[:MAX_NAME] for field in CELL_FIELDS]
