"""The order of an experiment's trials. Pure: the same experiment and seed give the same plan."""

import random
from collections.abc import Sequence

import msgspec

from cachemark.model.client_name import REPEAT_SUFFIX, parse_client_name
from cachemark.model.experiment import Experiment, Load, Timing, Workload
from cachemark.model.experiment_limits import check_limits, check_size
from cachemark.model.outcome import Cell, Trial
from cachemark.model.search_steps import MAX_SEARCHES, MAX_TRIALS, TYPICAL_TRIALS, closed_experiment
from cachemark.model.sitting_plan import sittings_of
from cachemark.model.work_length import plays_to_an_end

# Each block and each sitting has a seed; the stride keeps seeds of different experiments apart.
_SEED_STRIDE = 1_000_003
# The server's name in cells of caches inside the worker's own process.
NO_SERVER = "none"
# At most this many tries per valid trial (`until_valid`), averaged over the blocks.
MOST_TRIES = 2


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
    return parse_client_name(cell.client).again


def repetition_of(cell: Cell) -> Cell:
    """The cell in which a client that is played twice is played again."""
    return msgspec.structs.replace(cell, client=cell.client + REPEAT_SUFFIX)


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


class Sitting(msgspec.Struct, frozen=True, kw_only=True):
    """Trials that are played in turns with each other, in sets (see model/sitting_plan.py).

    `order_seed` is the seed of the order of its slices.
    """

    number: int
    block: int
    order_seed: int
    sets: list[list[Trial]]

    @property
    def trials(self) -> list[Trial]:
        """The trials of all sets."""
        return [trial for part in self.sets for trial in part]


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that cannot be played on this machine, known before the first trial, and why."""

    cell: Cell
    reason: str
    remedy: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The trials of a run in their order.

    `sittings` is empty if trials are played one after the other. `cells` includes the skipped ones.
    In a search, `experiment` and `trials` have the first steps only, whose results decide which
    rates follow. `written` is the experiment as its author wrote it.
    """

    written: Experiment
    experiment: Experiment
    cells: list[Cell]
    trials: list[Trial]
    sittings: list[Sitting] = []
    skipped: list[Skipped] = []

    @property
    def playable(self) -> list[Cell]:
        """The cells without the skipped ones."""
        left_out = [skip.cell for skip in self.skipped]
        return [cell for cell in self.cells if cell not in left_out]

    @property
    def typical_trials(self) -> int:
        """The number of trials: exact without a search, else an estimate."""
        return len(self.trials) * (TYPICAL_TRIALS if self.experiment.search else 1)

    @property
    def index_end(self) -> int:
        """The first trial index that this plan does not use."""
        return len(self.trials) * trials_per_cell(self.experiment)

    def without(self, skipped: Sequence[Skipped]) -> "Plan":
        """The plan without these cells; other cells take their places in blocks and sittings."""
        return self if list(skipped) == self.skipped else make_plan(self.written, skipped)

    def workload(self, cell: Cell) -> Workload:
        """The workload that a cell names."""
        return workload_of(self.experiment, cell)

    def load(self, cell: Cell) -> Load:
        """The load that a cell names."""
        return next(load for load in self.experiment.loads if load.name == cell.load)


def uses_rounds(experiment: Experiment) -> bool:
    """Whether an experiment's cells are played in turns, see `Experiment.design`.

    A single cell has no other to take turns with. A search plays trials, and so does a measuring
    client beside a load.
    """
    if experiment.search or any(load.measure for load in experiment.loads):
        return False
    several = len(client_labels(experiment)) * len(experiment.servers) > 1
    if experiment.design != "auto":
        return several and experiment.design == "rounds"
    closed = all(load.schedule == "closed" for load in experiment.loads)
    return closed and several and not any(map(plays_to_an_end, experiment.workloads))


def make_plan(experiment: Experiment, skipped: Sequence[Skipped] = ()) -> Plan:
    """The plan of an experiment without the cells that cannot be played."""
    check_limits(experiment, experiment.name)
    check_size(experiment)
    written = experiment
    if experiment.search:
        experiment = closed_experiment(experiment)
    grid = cells(experiment)
    left_out = [skip.cell for skip in skipped]
    playable = [cell for cell in grid if cell not in left_out]
    make = _make_sittings if uses_rounds(experiment) else _make_blocks
    trials, sittings = make(experiment, playable)
    return Plan(
        written=written,
        experiment=experiment,
        cells=grid,
        trials=trials,
        sittings=sittings,
        skipped=list(skipped),
    )


def _make_blocks(experiment: Experiment, grid: list[Cell]) -> tuple[list[Trial], list[Sitting]]:
    """Randomised blocks: each block plays every cell once, in a random order.

    Drift of the machine then affects all cells alike (randomised multiple interleaved trials,
    Abedi & Brecht, ICPE 2017). Within a block all clients play the same tape.
    """
    order = random.Random(experiment.seed)
    trials: list[Trial] = []
    for block in range(experiment.blocks):
        shuffled = list(grid)
        order.shuffle(shuffled)
        seed = _seed_of(experiment, block)
        trials += [
            Trial(index=len(trials) + offset, block=block, cell=cell, tape_seed=seed)
            for offset, cell in enumerate(shuffled)
        ]
    return trials, []


def _make_sittings(experiment: Experiment, grid: list[Cell]) -> tuple[list[Trial], list[Sitting]]:
    """Each block has the sittings that play every cell once, in a random order."""
    order = random.Random(experiment.seed)
    parts = sittings_of(grid, experiment.twice)
    trials: list[Trial] = []
    sittings: list[Sitting] = []
    for block in range(experiment.blocks):
        tape_seed = _seed_of(experiment, block)
        order.shuffle(parts)
        for sets in parts:
            number, set_trials = len(sittings), list[list[Trial]]()
            for part in sets:
                first = len(trials)
                set_trials.append(
                    [
                        Trial(
                            index=first + offset,
                            block=block,
                            sitting=number,
                            cell=cell,
                            tape_seed=tape_seed,
                        )
                        for offset, cell in enumerate(part)
                    ]
                )
                trials += set_trials[-1]
            order_seed = _seed_of(experiment, number)
            sittings.append(
                Sitting(number=number, block=block, order_seed=order_seed, sets=set_trials)
            )
    return trials, sittings


def _seed_of(experiment: Experiment, number: int) -> int:
    """The seed of a block's tape, or of the order of play of a sitting, with this number."""
    return (experiment.seed * _SEED_STRIDE + number) % 2**53


def trials_per_cell(experiment: Experiment) -> int:
    """The most trials of a cell in a block; with replays, on average over the blocks."""
    if experiment.search:
        return MAX_SEARCHES * MAX_TRIALS
    return 1 if experiment.until_valid is None else MOST_TRIES


def trial_count(experiment: Experiment) -> int:
    """The number of trials, without making the plan. Raises UsageError as `make_plan` does."""
    check_size(experiment)
    grid = cells(experiment)
    if not uses_rounds(experiment):
        return len(grid) * experiment.blocks
    # Sets of a sitting that overlap play their references in each.
    sittings = sittings_of(grid, experiment.twice)
    return sum(len(part) for sets in sittings for part in sets) * experiment.blocks


def workload_of(experiment: Experiment, cell: Cell) -> Workload:
    """The workload that a cell names."""
    return next(w for w in experiment.workloads if w.name == cell.workload)


def warmup_ms(workload: Workload, timing: Timing) -> int:
    """The longest warm-up in ms: the workload's, or else the experiment's."""
    return timing.warmup_ms if workload.warmup_ms is None else workload.warmup_ms


def measuring_load(load: Load) -> Load:
    """The load of the trial's own client: `load`, or a low rate if generators make the load."""
    if load.measure is None:
        return load
    return Load(
        name=load.name,
        schedule="poisson",
        rate=load.measure.rate,
        connections=load.measure.connections,
        wire=load.wire,
    )
