"""The main job, in the order in which it is done: from an experiment to the report of its run.

    experiment ─▶ plan ─▶ run's folder ─▶ what is not here ─▶ audit ─▶ ┌ next part ◀─┐ ─▶ report
                                                                       └▶ outcomes ──┘
                                                                          on disk

A part is one trial or one sitting. `next_trials/` decides from the outcomes which is next, and
when nothing is. A stage plays it: this machine (`stage.py`), or several hosts (`agents/trial.py`).
"""

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from pathlib import Path

import msgspec

from cachemark.host.awake import awake
from cachemark.host.facts import facts
from cachemark.host.placement import cores, placement, usable_cpus
from cachemark.host.process import parse_cpus
from cachemark.host.temporary import temporary_folder
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import Plan, make_plan
from cachemark.model.run_header import HostsOfRun, RunHeader
from cachemark.runs.audit import Auditor
from cachemark.runs.events.log import with_web_time
from cachemark.runs.next_trials.schedule import Part, schedule
from cachemark.runs.planning.data_fit import (
    check_sitting_memory,
    lines_about_fit,
    lines_about_windows,
)
from cachemark.runs.planning.plan_text import work_lines
from cachemark.runs.planning.planned_time import check_looks
from cachemark.runs.settings import Settings
from cachemark.runs.sittings.sitting import SittingDisplay
from cachemark.runs.stage import Display, Parties, Say, Stage, ThisHost
from cachemark.runs.storage.store import Run, create_run
from cachemark.runs.tapes import TapeCache


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A run, the plan of all its cells, who takes part, and where."""

    run: Run
    plan: Plan
    parties: Parties
    stage: Stage = ThisHost()


def planned(experiment: Experiment, parties: Parties, say: Say, warn: Say) -> Plan:
    """The plan of an experiment that can be placed, written and answered; announces its trials.

    Raises UsageError.
    """
    usable = usable_cpus()
    placement(experiment.placement, usable)
    plan = make_plan(experiment)
    check_looks(plan, len(usable))
    with temporary_folder() as folder:
        tapes = TapeCache(parties.engine, folder).check(plan)
    for line in work_lines(plan, tapes):
        say(line)
    data = {names: tape.data for names, tape in tapes.items()}
    for line in [*lines_about_fit(plan, parties.servers, data), *lines_about_windows(plan)]:
        warn(line)
    return plan


def new_job(
    plan: Plan, parties: Parties, out: Path, hosts: HostsOfRun | None = None, *, name: str = ""
) -> Job:
    """A run that is new, with its folder in `out`. Raises UsageError."""
    command = shlex.join(sys.argv)
    run = create_run(out, plan.written, host=facts(), command=command, hosts=hosts, name=name)
    return Job(run=run, plan=plan, parties=parties)


def resumed_job(run: Run, parties: Parties) -> Job:
    """A resumed run."""
    return Job(run=run, plan=make_plan(run.header.experiment), parties=parties)


def play(
    job: Job, display: AbstractContextManager[Display], write_report: Callable[[Run], None]
) -> list[Outcome]:
    """Play the missing trials of a run, and write its report; returns all of its outcomes.

    Raises UsageError, and TrialError if the stage can play no more; the run keeps its outcomes.
    """
    with (
        job.run,
        display as shown,
        temporary_folder() as folder,
        awake(usable_cpus()) if job.run.header.experiment.awake else nullcontext() as awake_pid,
    ):
        settings = _audited(job, TapeCache(job.parties.engine, folder), awake_pid, shown)
        plan, outcomes = settings.plan, job.run.outcomes()
        _store(job.run, _skipped_outcomes(job.run.id, plan, outcomes), outcomes)
        parts = schedule(plan, outcomes, _client_cpus(job.run.header, settings.cpus[1]))
        for _, block in groupby(parts, lambda part: part.block):
            for part in block:
                _play_part(part, job, settings, shown, outcomes)
            if plan.sittings:
                shown.answers(outcomes)
    write_report(job.run)
    return outcomes


def _client_cpus(header: RunHeader, here: str) -> int:
    """The number of CPUs for clients on each host; `here` are the CPUs on this one, empty: any."""
    if header.hosts is None:
        return len(parse_cpus(here) if here else usable_cpus())
    facts = header.hosts.facts
    return min(
        len(parse_cpus(one.cpus) if one.cpus else facts[one.name].usable_cpus) // len(one.roles)
        for one in header.hosts.plan.clients
    )


def _audited(job: Job, tapes: TapeCache, awake_pid: int | None, display: Display) -> Settings:
    """Settings of all trials: the plan without missing parties, and servers that are not fit.

    The audit is made once and stored with the run.
    """
    run, parties, stage = job.run, job.parties, job.stage
    audit = run.audit()
    plan = job.plan.without(audit.skipped if audit else stage.unplayable(job.plan, parties))
    check_sitting_memory(plan, parties.clients)
    display.planned(plan)
    auditor = Auditor(plan, parties.clients, parties.servers)
    if audit is None:
        audit = stage.audit(auditor, tapes, display.auditing)
        run.store_audit(audit)
        if len(audit.skipped) > len(plan.skipped):
            plan = plan.without(audit.skipped)
            display.refused(plan)
    usable = usable_cpus()
    return Settings(
        run=run.id,
        plan=plan,
        parties=parties,
        tapes=tapes,
        auditor=auditor,
        audit=audit,
        cpus=placement(plan.experiment.placement, usable, cores(usable)),
        awake_pid=awake_pid,
        hosts_of=stage.hosts_of,
    )


def _play_part(
    part: Part, job: Job, settings: Settings, display: Display, outcomes: list[Outcome]
) -> None:
    """Play a trial or a sitting; its outcomes are on disk before the display shows them."""
    sitting = part.sitting
    if sitting is None:
        ((trial,),) = part.sets
        display.begins(trial, part.number, part.total, is_replay=part.is_replay)
        setting = settings.of_trial(part)
        new = with_web_time(lambda: [job.stage.run_trial(setting, display.ops)])
    else:
        display.sitting(sitting, part.number, part.total)
        arms = settings.of_sitting(part, sitting.order_seed, outcomes)
        shown = SittingDisplay(doing=display.doing, played=display.played)
        new = with_web_time(lambda: job.stage.play_sitting(arms, shown))
    _store(job.run, new, outcomes)
    for outcome in new:
        display.ends(outcome)
    if sitting is not None:
        display.sitting_ended()


def _store(run: Run, new: list[Outcome], outcomes: list[Outcome]) -> None:
    if new:
        run.append(new)
        outcomes += new


def _skipped_outcomes(run_id: str, plan: Plan, known: list[Outcome]) -> list[Outcome]:
    """Outcomes of cells that cannot be played, each once for a run, with the reason."""
    done = {outcome.trial.index for outcome in known}
    return [
        Outcome(
            run=run_id,
            trial=Trial(index=index, block=0, cell=skip.cell, tape_seed=0),
            workload=plan.workload(skip.cell),
            load=plan.load(skip.cell),
            timing=plan.experiment.timing,
            state="unsupported",
            reason=skip.reason,
            remedy=skip.remedy,
        )
        for index, skip in enumerate(plan.skipped, plan.index_end)
        if index not in done
    ]
