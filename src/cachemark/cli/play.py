"""Plays a run on the terminal: what `run`, `drive` and `compare --play` share."""

import shlex
from collections.abc import Sequence

from cachemark.analysis.rate_search import Search, bounds, searches
from cachemark.cli.display import RemainingTime, make_display
from cachemark.cli.logged_display import logged
from cachemark.host.atomic_file import replace_file
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import Plan
from cachemark.report.console import plain_console, print_words
from cachemark.report.formats import render
from cachemark.report.rounds import QuestionStandings, standing, standing_lines
from cachemark.runs.next_trials.schedule import trials_left
from cachemark.runs.planning.plan_text import extent
from cachemark.runs.planning.planned_time import Tapes, left_s
from cachemark.runs.play import Job, planned, play
from cachemark.runs.stage import Parties, parties_of
from cachemark.runs.storage.store import Run
from cachemark.runs.tapes import TapeCache


def tapes_of_traces(plan: Plan, parties: Parties) -> Tapes:
    """The first tapes of a plan that plays a trace: only they say how long it is."""
    if not any(workload.trace for workload in plan.experiment.workloads):
        return {}
    with temporary_folder() as folder:
        tapes = TapeCache(parties.engine, folder).check(plan)
    return {names: tape.facts for names, tape in tapes.items()}


def planned_shown(experiment: Experiment) -> tuple[Plan, Parties]:
    """An experiment's plan and who takes part in it; prints what it plays. Raises UsageError."""
    parties = parties_of(experiment, say)
    return planned(experiment, parties, say, warn), parties


def play_shown(job: Job) -> list[Outcome]:
    """Play the rest of a run, and show its progress. Returns all of its outcomes."""
    run, experiment = job.run, job.plan.experiment
    known: dict[int, QuestionStandings] = {}

    def ranked(outcomes: list[Outcome]) -> QuestionStandings:
        if len(outcomes) not in known:
            known[len(outcomes)] = standing(experiment, outcomes)
        return known[len(outcomes)]

    def lines(outcomes: list[Outcome]) -> list[str]:
        return standing_lines(ranked(outcomes))

    tapes, earlier = tapes_of_traces(job.plan, job.parties), run.outcomes()

    def extent_line(plan: Plan) -> str:
        return f"{experiment.name}: {extent(plan, tapes)}, kept in {run.folder}"

    def left_of(plan: Plan, ended: Sequence[Outcome]) -> float | None:
        outcomes = [*earlier, *ended]
        return left_s(plan, tapes, trials_left(plan, outcomes), outcomes)

    clock = RemainingTime(experiment.rounds.max_s if job.plan.sittings else None, left_of)
    display = make_display(plain_console(stderr=True), extent_line, lines, clock)
    try:
        return play(job, logged(display, run, ranked), write_report)
    except KeyboardInterrupt:
        audit = run.audit()
        plan = job.plan.without(audit.skipped) if audit else job.plan
        kept = run.done() & {trial.index for trial in plan.trials}
        say(
            f"interrupted: {len(kept)} of {len(plan.trials)} trials are kept; "
            f"continue with: cachemark run --resume {shlex.quote(str(run.folder))}"
        )
        raise


def write_report(run: Run) -> None:
    """Write the report into the run's folder. Raises UsageError."""
    path = run.folder / "report.md"
    try:
        replace_file(path, render("markdown", run, None))
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}",
            "all outcomes are kept; `cachemark report` makes it again",
        ) from error


def exit_status(outcomes: list[Outcome], experiment: Experiment) -> int:
    """1 if a trial failed, nothing was measured, or all measured trials of a cell are INVALID.

    A trial that was replayed counts as its last replay.
    For a search: 1 if a cell has no rate. Trials of too high rates may be INVALID.
    """
    if experiment.search:
        begun = searches(outcomes, experiment)
        found = {_place(one) for one in begun if bounds(one, final=True).best}
        return 0 if begun and found.issuperset(map(_place, begun)) else 1
    measured = [outcome for outcome in outcomes if outcome.state == "measured"]
    good = {outcome.trial.cell for outcome in measured if outcome.verdict != "INVALID"}
    cells = {outcome.trial.cell for outcome in measured}
    last = {(outcome.trial.block, outcome.trial.cell): outcome.state for outcome in outcomes}
    failed = "failed" in last.values()
    return 1 if failed or not measured or cells - good else 0


def _place(search: Search) -> tuple[int, Cell]:
    """The cell of a search, without its threads: one with more threads continues another."""
    return search.block, search.after or search.cell


def warn(line: str) -> None:
    """Print a warning to stderr."""
    say(f"warning: {line}")


def say(line: str) -> None:
    """Print a line to stderr."""
    print_words(plain_console(stderr=True), line)
