"""Progress of a run: a live line on a terminal, plain lines otherwise."""

import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from cachemark.analysis.giving_up import reason_without_ports
from cachemark.analysis.number_format import count_of
from cachemark.analysis.statistics.figures import window_rate
from cachemark.model.foreign_text import clean
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import Plan, Sitting
from cachemark.report.absences import absence_text, find_absences
from cachemark.report.console import print_words
from cachemark.runs.stage import Display

_BAR_COLUMNS = 20
# A narrower terminal has no bar.
_WIDE_COLUMNS = 100
# The bar of a sitting moves in such steps: drawing takes CPU time from the measurement.
_PART_SHOWN = 0.05
# A part that takes longer than this gets a line before its end.
_LONG_S = 10.0

# A line that says how much a plan plays.
ExtentOf = Callable[[Plan], str]
# The estimated time of the plan's trials that have no outcome yet; None if unknown.
LeftOf = Callable[[Plan, Sequence[Outcome]], float | None]
# The ranking after some sittings, a line for each question.
StandingOf = Callable[[list[Outcome]], list[str]]


@contextmanager
def make_display(
    console: Console, extent: ExtentOf, standing: StandingOf, clock: "RemainingTime | None" = None
) -> Generator[Display]:
    """A live display on a terminal, plain lines otherwise."""
    clock = clock or RemainingTime()
    if not console.is_terminal:
        plain = PlainDisplay(console, extent, standing, clock)
        yield plain
        plain.repeat_problems()
        return
    progress = Progress(
        TextColumn("{task.fields[number]}"),
        *([BarColumn(bar_width=_BAR_COLUMNS)] if console.width >= _WIDE_COLUMNS else []),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[rate]}"),
        # Figures and units stay whole; the name has the remaining room.
        TextColumn("{task.fields[what]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
        console=console,
        transient=True,
        expand=True,
        # Drawing takes CPU time from the measurement.
        refresh_per_second=1,
    )
    with progress:
        live = LiveDisplay(console, extent, standing, clock, progress)
        yield live
    live.repeat_problems()


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        print_words(console, line)


def refusals(plan: Plan) -> list[str]:
    """The cells that are not played: a line for each reason."""
    return [f"not played: {absence_text(one)}" for one in find_absences(plan.skipped, plan.cells)]


class _Problems:
    """Problems of trials: prints each reason once, and counts its repetitions."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Outcome]] = {}

    def first(self, outcome: Outcome) -> bool:
        """Note a trial with a problem; returns whether its reason is new."""
        alike = self._seen.setdefault(_kind_of_problem(outcome), [])
        alike.append(outcome)
        return len(alike) == 1

    def again(self) -> list[str]:
        """One line for each reason that occurred more than once."""
        return [
            f"{count_of(len(alike), 'trial')} of {count_of(len(cells), 'cell')}: "
            f"{problem_of(alike[0]).removeprefix(name_of(alike[0].trial) + ': ')}"
            for alike in self._seen.values()
            if (cells := {outcome.trial.cell for outcome in alike}) and len(alike) > 1
        ]


def _kind_of_problem(outcome: Outcome) -> str:
    """A key that is the same for problems that differ only in ports and figures."""
    rules = sorted({one.rule for one in outcome.findings if one.weight == outcome.verdict})
    if rules:
        return f"{outcome.verdict} {', '.join(rules)}"
    reason = outcome.reason or "; ".join(outcome.reasons)
    return f"{outcome.state} {reason_without_ports(reason)}"


class RemainingTime:
    """The remaining time, estimated from the trials of this session; never above the limit.

    `left_of` estimates the remaining trials. Without it, all parts of a run are equally long.
    """

    def __init__(self, limit_s: float | None = None, left_of: LeftOf | None = None) -> None:
        self._limit_s = math.inf if limit_s is None else limit_s
        self._left_of = left_of
        self._plan: Plan | None = None
        self._outcomes: list[Outcome] = []
        self._began = 0.0
        self._first: int | None = None
        self.total = 0
        self.number = 0
        self._playing = 0

    def planned(self, plan: Plan) -> None:
        """Take the plan, or the plan without the cells that cannot be played."""
        self._plan = plan

    def begins(self, number: int, total: int) -> None:
        """Trial `number` of `total` begins."""
        if self._first is None:
            self._first, self._began = number, time.monotonic()
        self.number, self.total, self._playing = number, total, 1

    def ends(self, outcome: Outcome | None = None) -> None:
        """The trial, or the sitting, has ended."""
        self._playing = 0
        if outcome is not None:
            self._outcomes.append(outcome)

    def left(self) -> str:
        """Text such as `1:42 left`; empty until a trial has ended, and after the last one."""
        ended = self.number - (self._first or 0) + 1 - self._playing
        remaining = self.total - self.number + self._playing
        if ended < 1 or remaining < 1:
            return ""
        spent_s = time.monotonic() - self._began
        left_s = self._by_plan()
        left_s = spent_s / ended * remaining if left_s is None else left_s
        seconds = round(min(left_s, max(0.0, self._limit_s - spent_s)))
        return f"{seconds // 60}:{seconds % 60:02} left"

    def _by_plan(self) -> float | None:
        if self._plan is None or self._left_of is None:
            return None
        return self._left_of(self._plan, self._outcomes)


class RateMeter:
    """Operations per second since the last reading; each phase counts from zero."""

    def __init__(self) -> None:
        self._ops = 0
        self._at = time.monotonic()

    def reading(self, ops: int) -> float | None:
        """The rate, or None at the start of a phase."""
        now = time.monotonic()
        before, at = self._ops, self._at
        self._ops, self._at = ops, now
        if ops < before or now <= at:
            return None
        return (ops - before) / (now - at)

    def restart(self) -> None:
        """A new trial begins."""
        self._ops, self._at = 0, time.monotonic()


class _PrintingDisplay(Display):
    """Prints what stays on the screen: the plan, what is not played, the ranking so far."""

    def __init__(
        self, console: Console, extent: ExtentOf, standing: StandingOf, clock: RemainingTime
    ) -> None:
        self._console, self._extent, self._standing = console, extent, standing
        self._problems, self._clock = _Problems(), clock

    def repeat_problems(self) -> None:
        """Print how often each reason occurred, if more than once."""
        _print_lines(self._console, self._problems.again())

    def planned(self, plan: Plan) -> None:
        self._clock.planned(plan)
        _print_lines(self._console, [*refusals(plan), self._extent(plan)])

    def refused(self, plan: Plan) -> None:
        self._clock.planned(plan)
        _print_lines(self._console, refusals(plan))

    def answers(self, outcomes: list[Outcome]) -> None:
        """A block of sittings has ended: show the ranking so far."""
        _print_lines(self._console, self._standing(outcomes))


class LiveDisplay(_PrintingDisplay):
    """One line that is updated: trial k of n, remaining time, operations per second."""

    def __init__(
        self,
        console: Console,
        extent: ExtentOf,
        standing: StandingOf,
        clock: RemainingTime,
        progress: Progress,
    ) -> None:
        super().__init__(console, extent, standing, clock)
        self._progress, self._rate = progress, RateMeter()
        self._last_part: float | None = None
        self._task = progress.add_task("", total=None, number="", left="", rate="", what="")

    def begins(self, trial: Trial, number: int, total: int, *, is_replay: bool = False) -> None:
        self._begins(number, total, f"replay: {name_of(trial)}" if is_replay else name_of(trial))

    def ops(self, ops: int) -> None:
        rate = self._rate.reading(ops)
        if rate is not None:
            self._progress.update(self._task, rate=f"{rate:,.0f} ops/s")

    def sitting(self, sitting: Sitting, number: int, total: int) -> None:
        self._begins(number, total, f"{len(sitting.trials)} clients")
        self._progress.update(self._task, rate="")

    def _begins(self, number: int, total: int, what: str) -> None:
        self._clock.begins(number, total)
        self._rate.restart()
        self._progress.update(
            self._task,
            total=total,
            completed=number - 1,
            number=f"{number} of {total}",
            left=self._clock.left(),
            what=what,
        )

    def doing(self, what: str) -> None:
        self._progress.update(self._task, what=what)

    def played(self, part: float) -> None:
        """A row of a square has been played; shown seldom, because drawing costs CPU time."""
        if self._last_part is None or not 0 <= part - self._last_part < _PART_SHOWN:
            self._last_part = part
            number = self._clock.number
            self._progress.update(
                self._task, completed=number - 1 + part, what=f"in turns, {part:.0%}"
            )

    def ends(self, outcome: Outcome) -> None:
        """A trial has ended: only a problem gets a line that stays.

        A short trial ends before its worker reports progress, so its own rate is shown meanwhile.
        """
        self._clock.ends(outcome)
        self._progress.update(self._task, rate=f"last {rate_of(outcome)}")
        problem = problem_of(outcome)
        if problem and self._problems.first(outcome):
            _print_lines(self._console, [problem])


class PlainDisplay(_PrintingDisplay):
    """One line per trial, for logs and pipes."""

    _what, _began, _wait_s = "trial", 0.0, math.inf

    def begins(self, trial: Trial, number: int, total: int, *, is_replay: bool = False) -> None:
        del trial
        self._begins("replay, trial" if is_replay else "trial", number, total)

    def sitting(self, sitting: Sitting, number: int, total: int) -> None:
        del sitting
        self._begins("sitting", number, total)

    def _begins(self, what: str, number: int, total: int) -> None:
        self._what, self._began, self._wait_s = what, time.monotonic(), _LONG_S
        self._clock.begins(number, total)

    def ops(self, ops: int) -> None:
        self.doing(f"{ops:,} operations of this phase")

    def doing(self, what: str) -> None:
        """Say so if a part takes long, such as the prefill: after 10 s, 20 s, 40 s."""
        if time.monotonic() - self._began >= self._wait_s:
            self._wait_s *= 2
            head = f"{self._what} {self._clock.number} of {self._clock.total}"
            print_words(self._console, f"{head}: {what}")

    def sitting_ended(self) -> None:
        self._clock.ends()
        left = self._clock.left()
        head = f"sitting {self._clock.number} of {self._clock.total}"
        self._console.print(f"{head} ended" + (f", at most {left}" if left else ""))

    def ends(self, outcome: Outcome) -> None:
        if self._what != "sitting":  # it goes on until all its arms have been told
            self._clock.ends(outcome)
        left = self._clock.left()
        head = f"{self._what} {self._clock.number} of {self._clock.total}"
        problem = problem_of(outcome)
        if (problem and not self._problems.first(outcome)) or (
            self._what == "sitting" and not problem
        ):
            return
        line = problem or f"{name_of(outcome.trial)}: {rate_of(outcome)}"
        text = f"{head}: {line}" + (f" ({left})" if left else "")
        print_words(self._console, text)


def name_of(trial: Trial) -> str:
    """The name of a trial's cell on one line."""
    cell = trial.cell
    return clean(f"{cell.client} · {cell.server} · {cell.workload} · {cell.load}")


def rate_of(outcome: Outcome) -> str:
    """The rate of a measured trial, as its report has it."""
    ops_per_s = window_rate(outcome)
    return "nothing measured" if ops_per_s is None else f"{ops_per_s:,.0f} ops/s"


def problem_of(outcome: Outcome) -> str:
    """The problem of a trial, as a line; empty without one."""
    name = name_of(outcome.trial)
    if outcome.state != "measured":
        remedy = f" ({outcome.remedy})" if outcome.remedy else ""
        return f"{name}: {outcome.state}: {outcome.reason}{remedy}"
    if outcome.verdict != "VALID":
        return f"{name}: {outcome.verdict}: {'; '.join(outcome.reasons)}"
    return ""
