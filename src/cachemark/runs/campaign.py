"""The loops over trials and sittings: store each outcome, resume, keep a display up to date."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import groupby
from typing import Protocol

import msgspec

from cachemark import host
from cachemark.analysis.giving_up import given_up
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import ServerSpec
from cachemark.host.temporary import temporary_folder
from cachemark.model.experiment import Load
from cachemark.model.measuring import measuring_load
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import Plan, Sitting, Skipped, make_plan
from cachemark.runs.audit import Audit, Auditor
from cachemark.runs.generations import generation_arguments
from cachemark.runs.next_trials.rate_steps import RateStep, RateSteps
from cachemark.runs.next_trials.replays import next_replays, replays_of
from cachemark.runs.next_trials.stopping import Stopping
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting, play_sitting
from cachemark.runs.storage.store import Run
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import run_trial
from cachemark.runs.web_time import with_web_time

RunTrial = Callable[[Setting, Callable[[int], None]], Outcome]
SittingPlayer = Callable[[SittingSetting, SittingDisplay], list[Outcome]]


class Display(Protocol):
    """What a campaign reports while it runs."""

    def auditing(self, what: str) -> None:
        """Something is being checked before the first trial."""

    def refused(self, plan: Plan) -> None:
        """The audit has ruled out some cells; the plan has them among its skipped ones."""

    def begins(self, trial: Trial, number: int, total: int, *, is_replay: bool = False) -> None:
        """Trial `number` of `total` begins; a replay plays once more what the machine spoiled."""

    def ops(self, ops: int) -> None:
        """The phase that is going on has done so many operations."""

    def ends(self, outcome: Outcome) -> None:
        """A trial has ended and its outcome is on disk."""

    def sitting(self, sitting: Sitting, number: int, total: int) -> None:
        """Sitting `number` of at most `total` begins."""

    def doing(self, what: str) -> None:
        """A step of the sitting begins."""

    def played(self, part: float) -> None:
        """This part of the sitting's slices has been played."""

    def sitting_ended(self) -> None:
        """A sitting has ended and its outcomes are on disk."""

    def answers(self, outcomes: list[Outcome]) -> None:
        """Every cell has had a sitting more; these are all outcomes of the run so far."""


class Elsewhere(Protocol):
    """Plays on other hosts what a campaign otherwise plays here."""

    def audit(self, plan: Plan, announce: Callable[[str], None]) -> Audit:
        """Check servers and levels."""
        ...

    def run_trial(self, setting: Setting, progress: Callable[[int], None]) -> Outcome:
        """Run one trial. Raises TrialError if none can be run any more."""
        ...

    def play_sitting(self, setting: SittingSetting, display: SittingDisplay) -> list[Outcome]:
        """Play one sitting. Raises TrialError if none can be played any more."""
        ...


class Parties(msgspec.Struct, frozen=True, kw_only=True):
    """The clients and servers of an experiment by the text that names them."""

    clients: dict[str, ClientSpec]
    servers: dict[str, ServerSpec]
    engine: str


class _Common(msgspec.Struct, frozen=True, kw_only=True):
    """What all trials share. `here`: their processes are on this machine."""

    here: bool
    shelf: TapeCache
    auditor: Auditor
    audit: Audit
    server_cpus: str
    worker_cpus: str
    awake_pid: int | None
    run_trial: RunTrial
    play_sitting: SittingPlayer


def run_campaign(
    run: Run,
    plan: Plan,
    parties: Parties,
    display: Display,
    elsewhere: Elsewhere | None = None,
) -> list[Outcome]:
    """Run everything of the plan that the run does not hold yet; return all its outcomes."""
    experiment = plan.experiment
    usable = host.usable_cpus()
    placed = host.placement(experiment.placement, usable, host.cores(usable))
    with (
        temporary_folder() as folder,
        host.awake(usable) if experiment.awake else nullcontext() as awake_pid,
    ):
        shelf = TapeCache(parties.engine, folder)
        auditor = Auditor(plan, parties.clients, parties.servers)
        # Once for each run: a run that goes on has it already.
        audit = run.audit()
        if audit is None:
            announce = display.auditing
            audit = elsewhere.audit(plan, announce) if elsewhere else auditor.run(shelf, announce)
            run.store_audit(audit)
        if len(audit.skipped) > len(plan.skipped):
            plan = make_plan(run.header.experiment, audit.skipped)
            display.refused(plan)
        common = _Common(
            shelf=shelf,
            auditor=auditor,
            audit=audit,
            server_cpus=placed[0],
            worker_cpus=placed[1],
            awake_pid=awake_pid,
            here=elsewhere is None,
            run_trial=elsewhere.run_trial if elsewhere else run_trial,
            play_sitting=elsewhere.play_sitting if elsewhere else play_sitting,
        )
        campaign = _Campaign(run, plan, parties, common, display)
        campaign.record_skipped()
        if plan.sittings:
            campaign.play_sittings()
        elif experiment.search:
            campaign.play_searches()
        else:
            campaign.play_trials()
        return campaign.outcomes


class _Campaign:
    """What the loops over trials and over sittings share."""

    def __init__(
        self, run: Run, plan: Plan, parties: Parties, common: _Common, display: Display
    ) -> None:
        self._run, self._plan, self._parties = run, plan, parties
        self._common, self._display = common, display
        self._outcomes = run.outcomes()
        self._done = {outcome.trial.index for outcome in self._outcomes}

    @property
    def outcomes(self) -> list[Outcome]:
        """All outcomes of the run so far."""
        return self._outcomes

    def record_skipped(self) -> None:
        """Store what cannot be played, once: an outcome with the reason, which is no trial."""
        plan, first = self._plan, self._plan.index_end
        skipped = [
            _skipped_outcome(self._run.id, plan, index, skip)
            for index, skip in enumerate(plan.skipped, first)
            if index not in self._done
        ]
        if skipped:
            self._keep(skipped)

    def play_trials(self) -> None:
        """One trial after the other. What the machine spoiled is replayed at its block's end."""
        planned = len(self._plan.trials)
        replays = len(replays_of(self._plan, self._outcomes))
        for block, trials in groupby(self._plan.trials, lambda trial: trial.block):
            ended = 0
            for trial in trials:
                ended = trial.index + 1
                if trial.index not in self._done and trial.cell not in given_up(self._outcomes):
                    self._play_trial(trial, ended + replays, planned + replays)
            while again := next_replays(self._plan, block, self._outcomes):
                for trial in again:
                    replays = trial.index + 1 - planned
                    self._play_trial(trial, ended + replays, planned + replays, is_replay=True)

    def _play_trial(
        self, trial: Trial, number: int, total: int, *, is_replay: bool = False
    ) -> None:
        self._display.begins(trial, number, total, is_replay=is_replay)
        self._play(self._setting(trial))

    def _play(self, setting: Setting) -> None:
        common, display = self._common, self._display
        (outcome,) = with_web_time(lambda: [common.run_trial(setting, display.ops)])
        self._keep([outcome])
        display.ends(outcome)

    def play_searches(self) -> None:
        """A step of every search, then the next step of each, until all of them have ended."""
        steps = RateSteps(self._plan, self._run.header.experiment)
        while todo := steps.next_steps(self._outcomes):
            for step in todo:
                number = len(self._outcomes) - len(self._plan.skipped)
                setting = self._step_setting(step, number)
                total = max(number + 1, self._plan.typical_trials)
                self._display.begins(setting.trial, number + 1, total)
                self._play(setting)

    def play_sittings(self) -> None:
        """One sitting after the other, until every question is answered or the time is over."""
        plan = self._plan
        schedule = Stopping(plan, time.monotonic(), self._outcomes)
        for _, block in groupby(plan.sittings, lambda sitting: sitting.block):
            played = False
            for sitting in block:
                if any(trial.index in self._done for trial in sitting.trials):
                    continue
                lost = given_up(self._outcomes)
                sets = [
                    kept
                    for part in schedule.next_sets(sitting, self._outcomes, time.monotonic())
                    if (kept := [trial for trial in part if trial.cell not in lost])
                ]
                if sets:
                    self._play_sitting(sitting, sets)
                    played = True
            if played:
                self._display.answers(self._outcomes)

    def _play_sitting(self, sitting: Sitting, sets: list[list[Trial]]) -> None:
        plan, display = self._plan, self._display
        display.sitting(sitting, sitting.number + 1, len(plan.sittings))
        setting = SittingSetting(
            sets=[[self._setting(trial) for trial in part] for part in sets],
            rounds=plan.experiment.rounds,
            grown_ms=self._grown_ms(sets[0][0].cell),
            seed=sitting.order_seed,
            awake_pid=self._common.awake_pid,
        )
        shown = SittingDisplay(doing=display.doing, played=display.played)
        new = with_web_time(lambda: self._common.play_sitting(setting, shown))
        self._keep(new)
        for outcome in new:
            display.ends(outcome)
        display.sitting_ended()

    def _grown_ms(self, of: Cell) -> float:
        """The length of slices that the first sitting with a cell's work has decided."""
        lengths_us = [
            outcome.rounds.length_us
            for outcome in self._outcomes
            if outcome.rounds is not None
            and (outcome.trial.cell.workload, outcome.trial.cell.load) == (of.workload, of.load)
        ]
        return max(lengths_us, default=0) / 1e3

    def _operation_ns(self, cell: Cell) -> int:
        """What the cell's first sitting knows of the time of an operation."""
        of_cell = (each.rounds for each in self._outcomes if each.trial.cell == cell)
        return next((rounds.operation_ns for rounds in of_cell if rounds is not None), 0)

    def _keep(self, outcomes: list[Outcome]) -> None:
        self._run.append(outcomes)
        self._outcomes += outcomes

    def _step_setting(self, step: RateStep, index: int) -> Setting:
        """A step is played as the first one of its search is, with another load."""
        first = self._setting_with(step.first, step.load)
        trial = msgspec.structs.replace(step.first, index=index, cell=step.cell)
        return msgspec.structs.replace(first, trial=trial)

    def _setting(self, trial: Trial) -> Setting:
        return self._setting_with(trial, self._plan.load(trial.cell))

    def _setting_with(self, trial: Trial, load: Load) -> Setting:
        """A trial with this load; where generators make it, they have a setting of their own."""
        alone = self._setting_alone(trial, load)
        if load.measure is None:
            return alone
        shelf, own = self._common.shelf, measuring_load(load)
        own_cpus, generator_cpus = host.apart(alone.worker_cpus)
        generators = msgspec.structs.replace(
            alone, client=self._parties.clients[load.measure.generator], worker_cpus=generator_cpus
        )
        return msgspec.structs.replace(
            alone,
            load=own,
            tape=shelf.get(alone.workload, own, alone.timing, trial.tape_seed),
            worker_cpus=own_cpus,
            generators=generators,
        )

    def _setting_alone(self, trial: Trial, load: Load) -> Setting:
        plan, parties, common = self._plan, self._parties, self._common
        workload, timing = plan.workload(trial.cell), plan.experiment.timing
        server, in_rounds = parties.servers[trial.cell.server], bool(plan.sittings)
        generations = generation_arguments(load, server, in_rounds=in_rounds) if common.here else []
        return Setting(
            run=self._run.id,
            trial=trial,
            client=parties.clients[trial.cell.client],
            server=server,
            workload=workload,
            load=load,
            timing=timing,
            tape=common.shelf.get(workload, load, timing, trial.tape_seed, generations),
            server_cpus=common.server_cpus,
            worker_cpus=common.worker_cpus,
            awake_pid=common.awake_pid,
            noise=plan.experiment.noise,
            restrictions=common.auditor.restrictions(common.audit, trial.cell),
            slices=in_rounds,
            operation_ns=self._operation_ns(trial.cell) if in_rounds else 0,
        )


def _skipped_outcome(run_id: str, plan: Plan, index: int, skip: Skipped) -> Outcome:
    return Outcome(
        run=run_id,
        trial=Trial(index=index, block=0, cell=skip.cell, tape_seed=0),
        workload=plan.workload(skip.cell),
        load=plan.load(skip.cell),
        timing=plan.experiment.timing,
        state="unsupported",
        reason=skip.reason,
        remedy=skip.remedy,
    )
