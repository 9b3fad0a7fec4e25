"""`cachemark run`: run an experiment, print its table, store its outcomes."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli import completers
from cachemark.cli.display import refusals
from cachemark.cli.exit_status import OK
from cachemark.cli.hosts_run import for_hosts, for_one_host, play_new, play_on
from cachemark.cli.lengthened import lengthen
from cachemark.cli.output import print_text, terminal_width
from cachemark.cli.overrides import Overrides, planned_experiment
from cachemark.cli.play import exit_status, planned_shown, play_shown, say, tapes_of_traces, warn
from cachemark.cli.run_options import PLAY, RunOptions
from cachemark.cli.set_option import named_by_path
from cachemark.cli.web import check_packages, pages_of
from cachemark.endpoints.client_readiness import query_workers, recorded_readiness
from cachemark.endpoints.clients import registry, workers_folder
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_checks import check
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import Plan, uses_rounds
from cachemark.model.run_header import own_name
from cachemark.report.console import plain_console, print_words
from cachemark.report.formats import render
from cachemark.runs.agents.hosts_file import load_hosts
from cachemark.runs.planning.plan_text import extent
from cachemark.runs.planning.preflight import Preflight
from cachemark.runs.play import Job, new_job, resumed_job
from cachemark.runs.stage import Parties, parties_of
from cachemark.runs.storage.run_limits import named_programs
from cachemark.runs.storage.store import Run, latest_own_run, open_run


@dataclass(frozen=True)
class StorageOptions:
    """Where the run is stored, what it is called, and whether to continue a stopped one."""

    out: Annotated[
        Path, Parameter(name=["--runs", "--out"], group=PLAY, help="folder of all runs")
    ] = Path("results")
    name: Annotated[
        str, Parameter(group=PLAY, help="what you call the run: lists and reports show it")
    ] = ""
    resume: Annotated[
        bool,
        Parameter(
            group=PLAY,
            help="continue a stopped run (its id; default: the latest), or, with more --blocks "
            "(sittings, or searches) or a longer --max, one that has ended",
        ),
    ] = False
    trust_commands: Annotated[
        bool, Parameter(group=PLAY, help="with --resume: start the programs of an imported run")
    ] = False


def run(
    experiment: Annotated[
        str | None,
        Parameter(
            completer=completers.experiments,
            help="the name of a suite, or a TOML file; without it: quick",
        ),
    ] = None,
    *,
    options: Annotated[RunOptions | None, Parameter(name="*")] = None,
    storage: Annotated[StorageOptions | None, Parameter(name="*")] = None,
    hosts: Annotated[
        Path | None, Parameter(group=PLAY, help="play over the hosts of this file (docs/hosts.md)")
    ] = None,
    web: Annotated[
        bool, Parameter(group=PLAY, help="show the run in a browser while it goes on")
    ] = False,
    dry_run: Annotated[bool, Parameter(group=PLAY, help="only print the plan")] = False,
    details: Annotated[
        bool,
        Parameter(
            group=PLAY, help="print every table, or with --dry-run every trial, not only a summary"
        ),
    ] = False,
) -> int:
    """Run a suite or an experiment file, and print its table.

    The exit status is 1 if a trial failed, if nothing was measured, or if all measured trials of a
    cell are INVALID. OVERLOAD and NON_STATIONARY are results, so they do not change it.
    """
    storage = storage or StorageOptions()
    options = options or RunOptions()
    if web:
        _check_web(hosts)
    if storage.resume:
        _check_continues(dry_run=dry_run, name=storage.name)
        return _resume(experiment, storage, options, hosts, details=details, web=web)
    name = own_name(storage.name)
    with named_by_path(RunOptions.names()):
        plan, parties = planned_shown(_experiment(experiment, options.overrides(), hosts))
        if dry_run:
            shown = plan if hosts else _without_absent(plan, parties)
            return _print_plan(shown, parties, details=details)
        if hosts is not None:
            return _show(*play_new(plan, parties, hosts, storage.out, name), details=details)
        job = new_job(plan, parties, storage.out, name=name)
        return play_and_show(job, details=details, web=web)


def _warn_of_rounds(planned: Experiment, typed: Overrides) -> None:
    """Warn of each typed option of rounds if the run plays none."""
    values = {
        "--set rounds.slice_ms": typed.slice_ms,
        "--set rounds.until": typed.until,
        "--max": typed.max,
    }
    for option, value in values.items():
        if value is not None and not uses_rounds(planned):
            warn(f"{option} has no effect: this run plays trials, not rounds")


def _check_continues(*, dry_run: bool, name: str) -> None:
    if name:
        raise UsageError("--name names a new run, and --resume continues one", "leave it out")
    if dry_run:
        raise UsageError(
            "--dry-run prints the plan of a new run, and --resume continues one",
            "leave one of them out; `cachemark report ID` shows what the run has",
        )


def _check_web(hosts: Path | None) -> None:
    check_packages()
    if hosts is not None:
        raise UsageError(
            "--web shows runs of this host only", "open `cachemark web` in another terminal"
        )


def _experiment(name: str | None, overrides: Overrides, hosts: Path | None) -> Experiment:
    """The experiment with the typed options. Raises UsageError."""
    if name is None and not overrides.client:
        raise UsageError(
            "no experiment was named",
            "name a suite or a TOML file (`cachemark suites` lists the suites), or clients with "
            "--client: then the options change the suite `quick`",
        )
    planned = planned_experiment(name or suites.BASE, overrides)
    _warn_of_rounds(planned, overrides)
    return for_hosts(planned, load_hosts(hosts)) if hosts else for_one_host(planned)


def play_and_show(job: Job, *, details: bool, web: bool = False) -> int:
    """Play the rest of a run, print its answers, and return the exit status."""
    with pages_of(job.run) if web else nullcontext():
        outcomes = play_shown(job)
    return _show(job.run, outcomes, details=details)


def _show(stored_run: Run, outcomes: list[Outcome], *, details: bool) -> int:
    print_text(render("table" if details else "answers", stored_run, terminal_width()))
    folder = stored_run.folder
    print_text(f"outcomes {folder / 'outcomes.jsonl'}\nreport {folder / 'report.md'}")
    return exit_status(outcomes, stored_run.header.experiment)


def _resume(
    name: str | None,
    storage: StorageOptions,
    options: RunOptions,
    hosts: Path | None,
    *,
    details: bool,
    web: bool,
) -> int:
    stored_run = open_run(name, storage.out) if name else latest_own_run(storage.out)
    check(stored_run.header.experiment, str(stored_run.folder))
    lengthen(stored_run, options)
    if stored_run.imported:
        _show_programs(stored_run, trusted=storage.trust_commands)
    parties = parties_of(stored_run.header.experiment, say)
    if hosts is not None:
        return _show(stored_run, play_on(stored_run, parties, hosts), details=details)
    if stored_run.header.hosts is not None:
        raise UsageError(
            f"{stored_run.id} was played over several hosts", "name their file: --hosts FILE"
        )
    return play_and_show(resumed_job(stored_run, parties), details=details, web=web)


def _show_programs(found: Run, *, trusted: bool) -> None:
    """Print what an imported run would use here. Raises UsageError unless it is trusted."""
    programs = named_programs(found.header.experiment)
    if not programs:
        return
    lines = "\n".join(f"  {program}" for program in programs)
    text = f"{found.id} was imported, and would run, read or contact:\n{lines}"
    if not trusted:
        raise UsageError(text, "if you trust its author: --trust-commands")
    print_words(plain_console(stderr=True), text)


def _without_absent(plan: Plan, parties: Parties) -> Plan:
    """The plan without what is not on this machine, as set-up recorded it; says what that is."""
    folder, known = workers_folder(), registry(parties.engine)
    named = {spec.client.id for spec in parties.clients.values()} & known.keys()
    clients = [known[name] for name in sorted(named)]
    found = recorded_readiness(clients, folder)
    unknown = [client for client in clients if client.id not in found]
    found |= {client.id: readiness for client, readiness in query_workers(unknown, folder)}
    skipped = Preflight(parties.clients, parties.servers, found).skipped(plan)
    playable = plan.without(skipped)
    for line in refusals(playable):
        say(line)
    return playable


def _print_plan(plan: Plan, parties: Parties, *, details: bool) -> int:
    """Print how much it plays, and a line for each cell, or with `details` for each trial."""
    line = f"{plan.experiment.name}: {extent(plan, tapes_of_traces(plan, parties))}"
    print_words(plain_console(stderr=True), line)
    if details:
        for trial in plan.trials:
            print_text(
                f"{trial.index + 1:4} block {trial.block + 1}  {_names(trial.cell)}  "
                f"tape seed {trial.tape_seed}"
            )
        return OK
    blocks = Counter(trial.cell for trial in plan.trials)
    for cell in plan.cells:
        if count := blocks[cell]:
            print_text(f"{count:4} × {_names(cell)}")
    return OK


def _names(cell: Cell) -> str:
    return f"{cell.client}  {cell.server}  {cell.workload}  {cell.load}"
