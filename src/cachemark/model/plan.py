"""The order of an experiment's trials. Pure: the same experiment and seed give the same plan."""

from __future__ import annotations

import random

import msgspec

from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.outcome import Cell, Trial

# Each block has its own tape seed; the stride keeps the seeds of different experiments apart.
_SEED_STRIDE = 1_000_003
# The label of the client that is played a second time (`twice`, an A/A test).
REPEAT_SUFFIX = "#again"
# The server's name in cells of caches inside the worker's own process.
NO_SERVER = "none"


def cells(experiment: Experiment) -> list[Cell]:
    """Every combination of the grid, in the order of the experiment."""
    pairs = [
        (client, server) for server in experiment.servers for client in client_labels(experiment)
    ]
    return [
        Cell(client=client, server=server, workload=workload.name, load=load.name)
        for workload in experiment.workloads
        for load in loads_of(experiment, workload)
        for client, server in [*pairs, *_in_process(experiment, workload, load)]
    ]


def client_labels(experiment: Experiment) -> list[str]:
    """The clients as cells name them, including the second label of the client played twice."""
    again = [f"{experiment.twice}{REPEAT_SUFFIX}"] if experiment.twice else []
    return [*experiment.clients, *again]


def is_repeat(cell: Cell) -> bool:
    """Whether a cell is the repetition of a client that is played twice."""
    return cell.client.endswith(REPEAT_SUFFIX)


def _in_process(experiment: Experiment, workload: Workload, load: Load) -> list[tuple[str, str]]:
    """Cells without a server: once for all loads that differ only in their wire protocol."""
    first = loads_differing_only_in_wire(experiment, workload, load.name)[0]
    if first != load.name:
        return []
    return [(client, NO_SERVER) for client in experiment.in_process]


def loads_differing_only_in_wire(
    experiment: Experiment, workload: Workload, name: str
) -> list[str]:
    """The names of the loads that equal load `name` but for the wire; `name` is one of them."""
    bare = {
        load.name: msgspec.structs.replace(load, name="", wire="own")
        for load in loads_of(experiment, workload)
    }
    return [other for other, settings in bare.items() if settings == bare[name]]


def loads_of(experiment: Experiment, workload: Workload) -> list[Load]:
    """The loads that a workload is played with."""
    return [
        load for load in experiment.loads if workload.loads is None or load.name in workload.loads
    ]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run plays: its trials in their order. Made once, then handed on."""

    experiment: Experiment
    cells: list[Cell]
    trials: list[Trial]

    def workload(self, cell: Cell) -> Workload:
        """The workload that a cell names."""
        return workload_of(self.experiment, cell)

    def load(self, cell: Cell) -> Load:
        """The load that a cell names."""
        return load_of(self.experiment, cell)


def make_plan(experiment: Experiment) -> Plan:
    """Randomised blocks: each block plays every cell once, in a random order.

    Drift of the machine then affects all cells alike (randomised multiple interleaved trials,
    Abedi & Brecht, ICPE 2017). Within a block all clients play the same tape.
    """
    order = random.Random(experiment.seed)
    grid = cells(experiment)
    trials: list[Trial] = []
    for block in range(experiment.blocks):
        shuffled = list(grid)
        order.shuffle(shuffled)
        seed = (experiment.seed * _SEED_STRIDE + block) % 2**53
        trials += [
            Trial(index=len(trials) + offset, block=block, cell=cell, tape_seed=seed)
            for offset, cell in enumerate(shuffled)
        ]
    return Plan(experiment=experiment, cells=grid, trials=trials)


def workload_of(experiment: Experiment, cell: Cell) -> Workload:
    """The workload that a cell names."""
    return next(w for w in experiment.workloads if w.name == cell.workload)


def load_of(experiment: Experiment, cell: Cell) -> Load:
    """The load that a cell names."""
    return next(load for load in experiment.loads if load.name == cell.load)
