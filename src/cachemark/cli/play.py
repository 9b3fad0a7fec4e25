"""Plays an experiment on the terminal: what `run` and `compare --play` share."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from cachemark import host
from cachemark.analysis.number_format import count_of
from cachemark.analysis.rate_search import bounds, searches
from cachemark.cli.display import make_display
from cachemark.endpoints.client_versions import with_version
from cachemark.endpoints.clients import parse_client, registry
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process
from cachemark.host.atomic_file import replace_file
from cachemark.host.memory import check_planned_memory
from cachemark.host.temporary import temporary_folder
from cachemark.model.client_name import without_repeat
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome
from cachemark.model.plan import MOST_TRIES, NO_SERVER, Plan, client_labels, make_plan
from cachemark.model.run_header import HostsOfRun
from cachemark.model.search_steps import TYPICAL_TRIALS
from cachemark.report.absences import absence_text, find_absences
from cachemark.report.console import plain_console, print_words
from cachemark.report.formats import render
from cachemark.report.rounds import QuestionStandings, standing, standing_lines
from cachemark.runs.campaign import Elsewhere, Parties, run_campaign
from cachemark.runs.next_trials.questions import check_looks
from cachemark.runs.planning.data_fit import lines_about_fit
from cachemark.runs.planning.memory_plan import sitting_bytes
from cachemark.runs.planning.plan_text import work_lines
from cachemark.runs.planning.planned_time import Tapes, planned_s
from cachemark.runs.planning.preflight import Preflight
from cachemark.runs.planning.window_fit import lines_about_windows
from cachemark.runs.storage.store import Run, create_run
from cachemark.runs.tapes import TapeCache
from cachemark.web.live.display import logged

# A load average of so many times the CPUs: what is planned takes longer then.
_BUSY = 1.5


def check_playable(experiment: Experiment, parties: Parties) -> Plan:
    """Place the experiment and write its first tapes; say what it plays. Raises UsageError.

    Returns the plan of all cells.
    """
    host.placement(experiment.placement, host.usable_cpus())
    plan = make_plan(experiment)
    check_looks(plan, len(host.usable_cpus()))
    with temporary_folder() as folder:
        tapes = TapeCache(parties.engine, folder).check(plan)
    for line in work_lines(plan, tapes):
        _say(line)
    data = {names: tape.data for names, tape in tapes.items()}
    for line in [*lines_about_fit(plan, parties.servers, data), *lines_about_windows(plan)]:
        warn(line)
    return plan


def tapes_of_traces(plan: Plan, parties: Parties) -> Tapes:
    """The first tapes of a plan that plays a trace: only they say how long it is."""
    if not any(workload.trace for workload in plan.experiment.workloads):
        return {}
    with temporary_folder() as folder:
        tapes = TapeCache(parties.engine, folder).check(plan)
    return {names: tape.facts for names, tape in tapes.items()}


def new_run(
    experiment: Experiment, parties: Parties, out: Path, hosts: HostsOfRun | None = None
) -> Run:
    """Create the run of an experiment that can be placed and written. Raises UsageError."""
    # What cannot be placed, written or answered is said before there is a folder for it.
    check_playable(experiment, parties)
    command = shlex.join(sys.argv)
    return create_run(out, experiment, host=host.facts(), command=command, hosts=hosts)


def parties_of(experiment: Experiment) -> Parties:
    """Everything the experiment names, known before anything runs. Raises UsageError."""
    engine = process.binary_path()
    known = registry(engine)
    generators = {load.measure.generator for load in experiment.loads if load.measure}
    clients = [*experiment.clients, *experiment.in_process, *generators]
    named = {text: parse_client(text, known) for text in clients}
    servers = {text: parse_spec(text) for text in [*experiment.servers, NO_SERVER]}
    ready = {text: with_version(spec, _say) for text, spec in named.items()}
    return Parties(
        clients={
            text: ready[without_repeat(text)]
            for text in [*client_labels(experiment), *experiment.in_process, *generators]
        },
        servers=servers,
        engine=engine,
    )


def play(run: Run, parties: Parties, elsewhere: Elsewhere | None = None) -> list[Outcome]:
    """Play what a run does not hold yet; its reports are written. Returns all of its outcomes.

    `elsewhere` are other hosts; what they lack is in the outcomes of the trials there.
    """
    plan = make_plan(run.header.experiment) if elsewhere else _without_skipped(run, parties)
    together = max((len(sitting.trials) for sitting in plan.sittings), default=0)
    check_planned_memory(
        f"{together} clients, each with its server", sitting_bytes(plan, parties.clients)
    )
    planned = extent(plan, tapes_of_traces(plan, parties))
    _say(f"{run.header.experiment.name}: {planned}, kept in {run.folder}")

    known: dict[int, QuestionStandings] = {}

    def ranked(outcomes: list[Outcome]) -> QuestionStandings:
        # The terminal and the pages show the same.
        if len(outcomes) not in known:
            known[len(outcomes)] = standing(plan.experiment, outcomes)
        return known[len(outcomes)]

    def lines(outcomes: list[Outcome]) -> list[str]:
        return standing_lines(ranked(outcomes))

    try:
        limit_s = plan.experiment.rounds.max_s if plan.sittings else None
        with (
            run,
            make_display(plain_console(stderr=True), lines, limit_s) as shown,
            logged(shown, run, plan, ranked) as display,
        ):
            outcomes = run_campaign(run, plan, parties, display, elsewhere)
    except KeyboardInterrupt:
        _say(
            f"interrupted: {len(run.done())} of {len(plan.trials)} trials are kept; "
            f"continue with: cachemark run --resume {shlex.quote(str(run.folder))}"
        )
        raise
    write_report(run)
    return outcomes


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
    Of a search: if no rate was found for some cell. A rate that is too high may well be INVALID.
    """
    if experiment.search:
        all_searches = searches(outcomes, experiment)
        return (
            0
            if all_searches and all(bounds(search, final=True).best for search in all_searches)
            else 1
        )
    measured = [outcome for outcome in outcomes if outcome.state == "measured"]
    good = {outcome.trial.cell for outcome in measured if outcome.verdict != "INVALID"}
    cells = {outcome.trial.cell for outcome in measured}
    last = {(outcome.trial.block, outcome.trial.cell): outcome.state for outcome in outcomes}
    failed = "failed" in last.values()
    return 1 if failed or not measured or cells - good else 0


def _without_skipped(run: Run, parties: Parties) -> Plan:
    """The plan without what cannot be played here; a run that goes on knows it already."""
    experiment, audit = run.header.experiment, run.audit()
    if audit is not None:
        return make_plan(experiment, audit.skipped)
    plan = make_plan(experiment)
    skipped = Preflight(parties.clients, parties.servers).skipped(plan)
    for absence in find_absences(skipped, plan.cells):
        _say(f"not played: {absence_text(absence)}")
    return make_plan(experiment, skipped) if skipped else plan


def warn(line: str) -> None:
    """Print a warning to stderr."""
    _say(f"warning: {line}")


def _say(line: str) -> None:
    print_words(plain_console(stderr=True), line)


def _replays(plan: Plan, tapes: Tapes | None) -> str:
    """How long replays can make a run, in words; empty without them."""
    wanted, most = plan.experiment.until_valid, MOST_TRIES
    if wanted is None:
        return ""
    return (
        f", and replays until each cell has {wanted} valid: at most {most * len(plan.trials)} "
        f"trials, {_about(most * _planned_s(plan, tapes))}"
    )


def _planned_s(plan: Plan, tapes: Tapes | None) -> float:
    return planned_s(plan, len(host.usable_cpus()), tapes)


def _about(seconds: float) -> str:
    return f"about {seconds / 60:.0f} min" if seconds >= 90 else f"about {seconds:.0f} s"


def busy_note(load_1min: float, cpus: int) -> str:
    """That a plan takes longer where others use the machine, in words; empty on a quiet one."""
    if load_1min < _BUSY * cpus:
        return ""
    return f" if this machine were quiet (load average {load_1min:.0f})"


def extent(plan: Plan, tapes: Tapes | None = None) -> str:
    """How much a plan plays, and about how long that takes, in words."""
    experiment = plan.experiment
    busy = busy_note(os.getloadavg()[0], len(host.usable_cpus()))
    seed = f"{_about(_planned_s(plan, tapes))}{busy}{_replays(plan, tapes)}, seed {experiment.seed}"
    if experiment.search:
        cells = count_of(len(plan.trials) // experiment.blocks, "cell")
        each = "1 search" if experiment.blocks == 1 else f"{experiment.blocks} searches"
        return (
            f"the highest rate with {experiment.search}, {cells}, {each} of about "
            f"{TYPICAL_TRIALS} trials each, {seed}"
        )
    if not plan.sittings:
        trials, blocks = len(plan.trials), count_of(experiment.blocks, "block")
        return f"{count_of(trials, 'trial')}, {blocks}, {seed}"
    arms = len({trial.cell for trial in plan.trials})
    most = "" if experiment.rounds.until == "fixed" else "at most "
    return (
        f"{count_of(arms, 'cell')} in turns of {experiment.rounds.slice_ms:g} ms, "
        f"{most}{count_of(len(plan.sittings), 'sitting')}, {seed}"
    )
