"""The one loop over trials: writes after each, resumes, tells a display how it goes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from cachemark import host
from cachemark.clients import ClientSpec
from cachemark.experiment import Experiment
from cachemark.outcome import Outcome, Trial
from cachemark.plan import load_of, plan, workload_of
from cachemark.servers import ServerSpec
from cachemark.store import Run
from cachemark.tapes import TapeShelf
from cachemark.trial import Setting, run_trial


class Display(Protocol):
    """What a campaign tells as it goes."""

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


class _Places(msgspec.Struct, frozen=True, kw_only=True):
    shelf: TapeShelf
    server_cpus: str
    worker_cpus: str


def run_campaign(
    run: Run, experiment: Experiment, parties: Parties, display: Display
) -> list[Outcome]:
    """Run every trial of the plan that the run does not hold yet; return all its outcomes."""
    trials = plan(experiment)
    done = run.done()
    usable = host.usable_cpus()
    placed = host.placement(experiment.placement, usable, host.cores(usable))
    with tempfile.TemporaryDirectory(prefix="cachemark-") as folder:
        shelf = TapeShelf(parties.engine, Path(folder))
        places = _Places(shelf=shelf, server_cpus=placed[0], worker_cpus=placed[1])
        for trial in _left(trials, done):
            display.begins(trial, trial.index + 1, len(trials))
            setting = _setting(run.id, trial, experiment, parties, places)
            outcome = run_trial(setting, display.ops)
            run.append(outcome)
            display.ends(outcome)
    return run.outcomes()


def _left(trials: list[Trial], done: set[int]) -> Iterable[Trial]:
    return (trial for trial in trials if trial.index not in done)


def _setting(
    run_id: str,
    trial: Trial,
    experiment: Experiment,
    parties: Parties,
    places: _Places,
) -> Setting:
    workload = workload_of(experiment, trial.cell)
    load = load_of(experiment, trial.cell)
    return Setting(
        run=run_id,
        trial=trial,
        client=parties.clients[trial.cell.client],
        server=parties.servers[trial.cell.server],
        workload=workload,
        load=load,
        timing=experiment.timing,
        tape=places.shelf.get(workload, load, experiment.timing, trial.tape_seed),
        server_cpus=places.server_cpus,
        worker_cpus=places.worker_cpus,
    )
