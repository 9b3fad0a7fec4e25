"""Numbers that no machine can carry out, refused before anything is started. Pure."""

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load

# A thousand clients in a hundred blocks. A trial takes a second or more, so it is a day's work.
MAX_TRIALS = 100_000
_MAX_PROCESSES = 1024
# For one process: ports have 16 bits, and most limits of open files are similar.
_MAX_THREADS = 65_535
_MAX_CONNECTIONS = 65_535
# For one trial: each operation has a buffer somewhere.
_MAX_OUTSTANDING = 2**24
_MAX_BLOCKS = 100_000


def check_limits(experiment: Experiment, where: str) -> None:
    """Raise UsageError for the first number that is too large."""
    _check(where, "blocks", experiment.blocks, _MAX_BLOCKS)
    for load in experiment.loads:
        _check_load(load, f"{where}: load {load.name!r}")


def _check_load(load: Load, where: str) -> None:
    connections = load.connections or load.threads
    _check(where, "processes", load.processes, _MAX_PROCESSES)
    _check(where, "threads", load.threads, _MAX_THREADS)
    _check(where, "connections", connections, _MAX_CONNECTIONS)
    outstanding = outstanding_ops(load)
    _check(where, "processes × connections × depth", outstanding, _MAX_OUTSTANDING)


def outstanding_ops(load: Load) -> int:
    """The most operations of a load that can be outstanding at once."""
    return load.processes * max(load.connections or 0, load.threads) * load.depth


def _check(where: str, what: str, number: int, most: int) -> None:
    if number > most:
        raise UsageError(f"{where}: {what}: {number:,} is more than {most:,}")


def most_cells(experiment: Experiment) -> int:
    """An upper bound of the grid's cells: each workload may leave out some loads."""
    clients = len(experiment.clients) + bool(experiment.twice)
    pairs = clients * len(experiment.servers) + len(experiment.in_process)
    loads = [
        len(experiment.loads) if workload.loads is None else len(workload.loads)
        for workload in experiment.workloads
    ]
    return pairs * sum(loads)


def check_size(experiment: Experiment) -> None:
    """Raise UsageError for a plan of too many trials."""
    trials = most_cells(experiment) * experiment.blocks
    if trials > MAX_TRIALS:
        raise UsageError(
            f"{experiment.name}: {trials:,} trials are more than {MAX_TRIALS:,}",
            "fewer blocks, clients, servers, workloads or loads",
        )
