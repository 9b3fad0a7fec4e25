"""The one loop over trials: stores each outcome, resumes, keeps a display up to date."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Protocol

import msgspec

from cachemark import host
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import ServerSpec
from cachemark.host.temporary import temporary_folder
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import Plan
from cachemark.runs.audit import Audit, Auditor
from cachemark.runs.store import Run
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trial import Setting, run_trial


class Display(Protocol):
    """What a campaign reports while it runs."""

    def auditing(self, what: str) -> None:
        """Something is being checked before the first trial."""

    def begins(self, trial: Trial, number: int, total: int) -> None:
        """Trial `number` of `total` begins."""

    def ops(self, ops: int) -> None:
        """The phase that is going on has done so many operations."""

    def ends(self, outcome: Outcome) -> None:
        """A trial has ended and its outcome is on disk."""


class Parties(msgspec.Struct, frozen=True, kw_only=True):
    """The clients and servers of an experiment by the text that names them."""

    clients: dict[str, ClientSpec]
    servers: dict[str, ServerSpec]
    engine: str


class _Common(msgspec.Struct, frozen=True, kw_only=True):
    """What all trials share."""

    shelf: TapeCache
    auditor: Auditor
    audit: Audit
    server_cpus: str
    worker_cpus: str
    awake_pid: int | None


def run_campaign(run: Run, plan: Plan, parties: Parties, display: Display) -> list[Outcome]:
    """Run every trial of the plan that the run does not hold yet; return all its outcomes."""
    experiment = plan.experiment
    done = run.done()
    usable = host.usable_cpus()
    placed = host.placement(experiment.placement, usable, host.cores(usable))
    with (
        temporary_folder() as folder,
        host.awake(usable) if experiment.awake else nullcontext() as awake_pid,
    ):
        shelf = TapeCache(parties.engine, folder)
        auditor = Auditor(plan, parties.clients, parties.servers)
        common = _Common(
            shelf=shelf,
            auditor=auditor,
            audit=_audit(run, auditor, shelf, display),
            server_cpus=placed[0],
            worker_cpus=placed[1],
            awake_pid=awake_pid,
        )
        for trial in _left(plan.trials, done):
            display.begins(trial, trial.index + 1, len(plan.trials))
            setting = _setting(run.id, trial, plan, parties, common)
            outcome = run_trial(setting, display.ops)
            run.append(outcome)
            display.ends(outcome)
    return run.outcomes()


def _audit(run: Run, auditor: Auditor, shelf: TapeCache, display: Display) -> Audit:
    """Once for each run: a run that goes on has it already."""
    audit = run.audit()
    if audit is None:
        audit = auditor.run(shelf, display.auditing)
        run.store_audit(audit)
    return audit


def _left(trials: list[Trial], done: set[int]) -> Iterable[Trial]:
    return (trial for trial in trials if trial.index not in done)


def _setting(
    run_id: str,
    trial: Trial,
    plan: Plan,
    parties: Parties,
    common: _Common,
) -> Setting:
    experiment = plan.experiment
    workload, load = plan.workload(trial.cell), plan.load(trial.cell)
    return Setting(
        run=run_id,
        trial=trial,
        client=parties.clients[trial.cell.client],
        server=parties.servers[trial.cell.server],
        workload=workload,
        load=load,
        timing=experiment.timing,
        tape=common.shelf.get(workload, load, experiment.timing, trial.tape_seed),
        server_cpus=common.server_cpus,
        worker_cpus=common.worker_cpus,
        awake_pid=common.awake_pid,
        noise=experiment.noise,
        restrictions=common.auditor.restrictions(common.audit, trial.cell),
    )
