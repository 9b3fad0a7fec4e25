"""`cachemark run`: run an experiment, print its table, store its outcomes."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from cachemark import host
from cachemark.cli.display import make_display
from cachemark.cli.output import print_text, terminal_width
from cachemark.cli.overrides import Overrides, apply
from cachemark.endpoints.clients import parse_client, registry
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process
from cachemark.host.atomic_file import write_file
from cachemark.host.temporary import temporary_folder
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome
from cachemark.model.plan import NO_SERVER, REPEAT_SUFFIX, Plan, client_labels, make_plan
from cachemark.model.presets import expand
from cachemark.report.console import plain_console
from cachemark.report.formats import render
from cachemark.runs.campaign import Parties, run_campaign
from cachemark.runs.store import Run, create_run, latest_own_run, open_run
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trust import named_programs


@dataclass(frozen=True)
class StorageOptions:
    """Where the run is stored, and whether to continue a stopped one."""

    out: Annotated[Path, Parameter(name=["--runs", "--out"], help="folder of all runs")] = Path(
        "results"
    )
    resume: Annotated[
        bool, Parameter(negative="", help="continue a stopped run (its id; default: the latest)")
    ] = False
    trust_commands: Annotated[
        bool, Parameter(negative="", help="with --resume: start the programs of an imported run")
    ] = False


def run(
    experiment: Annotated[str | None, Parameter(help="the name of a suite, or a TOML file")] = None,
    *,
    overrides: Annotated[Overrides | None, Parameter(name="*")] = None,
    storage: Annotated[StorageOptions | None, Parameter(name="*")] = None,
    dry_run: Annotated[bool, Parameter(negative="", help="only print the plan")] = False,
) -> int:
    """Run a suite or an experiment file, and print its table.

    The exit status is 1 if a trial failed, if nothing was measured, or if all measured trials of a
    cell are INVALID. OVERLOAD and NON_STATIONARY are results, so they do not change it.
    """
    storage = storage or StorageOptions()
    overrides = overrides or Overrides()
    if storage.resume:
        return _resume(experiment, storage, overrides)
    if experiment is None:
        raise UsageError(
            "no experiment was named",
            "name a suite or a TOML file; `cachemark suites` lists the suites",
        )
    known = registry(process.binary_path())
    planned = apply(
        expand(suites.find(experiment, quick=overrides.quick), process.binary_path()),
        overrides,
        lambda text: parse_client(text, known).client.in_process,
    )
    parties, plan = _parties(planned), make_plan(planned)
    if dry_run:
        _print_plan(plan)
        return 0
    # What cannot be placed or written is said before there is a folder for it.
    host.placement(planned.placement, host.usable_cpus())
    with temporary_folder() as folder:
        TapeCache(parties.engine, folder).check(plan)
    stored_run = create_run(storage.out, planned, host=host.facts(), command=shlex.join(sys.argv))
    return _campaign(stored_run, plan, parties)


def _resume(name: str | None, storage: StorageOptions, overrides: Overrides) -> int:
    if overrides != Overrides():
        raise UsageError(
            "--resume continues a run with the options that it was started with",
            "leave the other options out",
        )
    found = open_run(name, storage.out) if name else latest_own_run(storage.out)
    planned = found.header.experiment
    if found.imported:
        _show_programs(found, trusted=storage.trust_commands)
    return _campaign(found, make_plan(planned), _parties(planned))


def _show_programs(found: Run, *, trusted: bool) -> None:
    """Print what an imported run would start. Raises UsageError unless it is trusted."""
    programs = named_programs(found.header.experiment)
    if not programs:
        return
    lines = "\n".join(f"  {program}" for program in programs)
    text = f"{found.id} was imported, and would run or contact:\n{lines}"
    if not trusted:
        raise UsageError(text, "if you trust whoever made it: --trust-commands")
    plain_console(stderr=True).print(text, markup=False, soft_wrap=True)


def _parties(experiment: Experiment) -> Parties:
    """Everything the experiment names, known before anything runs. Raises UsageError."""
    engine = process.binary_path()
    known = registry(engine)
    return Parties(
        clients={
            text: parse_client(text.removesuffix(REPEAT_SUFFIX), known)
            for text in [*client_labels(experiment), *experiment.in_process]
        },
        servers={text: parse_spec(text) for text in [*experiment.servers, NO_SERVER]},
        engine=engine,
    )


def _campaign(stored_run: Run, plan: Plan, parties: Parties) -> int:
    console = plain_console(stderr=True)
    experiment, total = plan.experiment, len(plan.trials)
    trials = "1 trial" if total == 1 else f"{total} trials"
    blocks = "1 block" if experiment.blocks == 1 else f"{experiment.blocks} blocks"
    console.print(
        f"{experiment.name}: {trials}, {blocks}, seed {experiment.seed}, "
        f"kept in {stored_run.folder}",
        highlight=False,
        soft_wrap=True,
    )
    try:
        with stored_run, make_display(console) as display:
            outcomes = run_campaign(stored_run, plan, parties, display)
    except KeyboardInterrupt:
        console.print(
            f"interrupted: {len(stored_run.done())} of {total} trials are kept; "
            f"continue with: cachemark run --resume {shlex.quote(str(stored_run.folder))}",
            highlight=False,
            soft_wrap=True,
        )
        raise
    print_text(render("table", stored_run, terminal_width()))
    _write_reports(stored_run)
    folder = stored_run.folder
    print_text(f"outcomes {folder / 'outcomes.jsonl'} · report {folder / 'report.md'}")
    return _status(outcomes)


def _write_reports(stored_run: Run) -> None:
    path = stored_run.folder / "report.md"
    try:
        write_file(path, render("markdown", stored_run, None))
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}",
            "all outcomes are kept; `cachemark report` makes it again",
        ) from error


def _status(outcomes: list[Outcome]) -> int:
    """1 if a trial failed, nothing was measured, or all measured trials of a cell are INVALID."""
    measured = [outcome for outcome in outcomes if outcome.state == "measured"]
    good = {msgspec.json.encode(o.trial.cell) for o in measured if o.verdict != "INVALID"}
    cells = {msgspec.json.encode(outcome.trial.cell) for outcome in measured}
    failed = any(outcome.state == "failed" for outcome in outcomes)
    return 1 if failed or not measured or cells - good else 0


def _print_plan(plan: Plan) -> None:
    for trial in plan.trials:
        cell = trial.cell
        print_text(
            f"{trial.index + 1:4} block {trial.block + 1}  {cell.client}  {cell.server}  "
            f"{cell.workload}  {cell.load}  tape seed {trial.tape_seed}"
        )
