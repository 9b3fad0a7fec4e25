"""Settings with which a run plays each trial, and how the clients' own settings differ."""

from collections.abc import Callable, Sequence

import msgspec

from cachemark.analysis.unseen_writes import PROXY, no_generations
from cachemark.endpoints.servers import ServerSpec
from cachemark.host.placement import apart
from cachemark.model.audit import Audit
from cachemark.model.experiment import Load
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.model.plan import Plan, measuring_load
from cachemark.runs.audit import Auditor
from cachemark.runs.next_trials.schedule import Part
from cachemark.runs.sittings.sitting import SittingSetting
from cachemark.runs.stage import Parties
from cachemark.runs.tapes import Generations, TapeCache
from cachemark.runs.trials.setting import Setting


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that all trials of a run share. `hosts_of`: the number of hosts for a load."""

    run: str
    plan: Plan
    parties: Parties
    tapes: TapeCache
    auditor: Auditor
    audit: Audit
    cpus: tuple[str, str]
    awake_pid: int | None
    hosts_of: Callable[[Load], int]

    def of_sitting(
        self, part: Part, order_seed: int, outcomes: Sequence[Outcome]
    ) -> SittingSetting:
        """The settings of a sitting; its cells' first sitting decides a part of them."""
        return SittingSetting(
            sets=[[self._of_arm(trial, outcomes) for trial in members] for members in part.sets],
            rounds=self.plan.experiment.rounds,
            grown_ms=_grown_ms(part.sets[0][0].cell, outcomes),
            seed=order_seed,
            awake_pid=self.awake_pid,
        )

    def _of_arm(self, trial: Trial, outcomes: Sequence[Outcome]) -> Setting:
        setting = self._of(trial, self.plan.load(trial.cell))
        known_ns = _operation_ns(trial.cell, outcomes)
        return msgspec.structs.replace(setting, operation_ns=known_ns)

    def of_trial(self, part: Part) -> Setting:
        """The settings of a part of one trial."""
        ((trial,),) = part.sets
        first = part.first or trial
        setting = self._of(first, part.load or self.plan.load(first.cell))
        return msgspec.structs.replace(setting, trial=trial)

    def _of(self, trial: Trial, load: Load) -> Setting:
        """A trial with this load; generators of the load, if any, have a setting of their own."""
        alone = self._without_generators(trial, load)
        if load.measure is None:
            return alone
        own = measuring_load(load)
        own_cpus, generator_cpus = apart(alone.worker_cpus)
        generators = msgspec.structs.replace(
            alone, client=self.parties.clients[load.measure.generator], worker_cpus=generator_cpus
        )
        return msgspec.structs.replace(
            alone,
            load=own,
            tape=self.tapes.get(alone.workload, own, alone.timing, trial.tape_seed),
            worker_cpus=own_cpus,
            generators=generators,
        )

    def _without_generators(self, trial: Trial, load: Load) -> Setting:
        workload, timing = self.plan.workload(trial.cell), self.plan.experiment.timing
        server, in_rounds = self.parties.servers[trial.cell.server], bool(self.plan.sittings)
        hosts = self.hosts_of(load)
        generations = generations_of(load, server, hosts=hosts, in_rounds=in_rounds)
        return Setting(
            run=self.run,
            trial=trial,
            client=self.parties.clients[trial.cell.client],
            server=server,
            workload=workload,
            load=load,
            timing=timing,
            tape=self.tapes.get(workload, load, timing, trial.tape_seed, generations),
            server_cpus=self.cpus[0],
            worker_cpus=self.cpus[1],
            awake_pid=self.awake_pid,
            noise=self.plan.experiment.noise,
            restrictions=self.auditor.restrictions(self.audit, trial.cell),
            slices=in_rounds,
        )


def _grown_ms(of: Cell, outcomes: Sequence[Outcome]) -> float:
    """The length of slices that the first sitting with a cell's work has decided."""
    lengths_us = [
        outcome.rounds.length_us
        for outcome in outcomes
        if outcome.rounds is not None
        and (outcome.trial.cell.workload, outcome.trial.cell.load) == (of.workload, of.load)
    ]
    return max(lengths_us, default=0) / 1e3


def _operation_ns(cell: Cell, outcomes: Sequence[Outcome]) -> int:
    """The time of an operation in ns, from the cell's first sitting; 0 if unknown."""
    of_cell = (each.rounds for each in outcomes if each.trial.cell == cell)
    return next((rounds.operation_ns for rounds in of_cell if rounds is not None), 0)


def generations_of(
    load: Load, server: ServerSpec, *, hosts: int, in_rounds: bool
) -> Generations | None:
    """The generations of a trial that `hosts` hosts of clients play; None if it has none.

    In rounds the arms share a `remote` server, and write the keys by the same tape.
    """
    if no_generations(load) or server.kind == "none":
        return None
    if server.kind == PROXY and load.depth > 1:
        return None
    lanes = load.processes * load.threads * hosts
    return Generations(lanes=lanes, shared_server=in_rounds and server.innermost.kind == "remote")
