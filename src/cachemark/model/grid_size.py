"""How many trials an experiment has, known before any of them is made. Pure."""

from __future__ import annotations

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment

# A thousand clients in a hundred blocks. A trial takes a second or more, so it is a day's work.
MAX_TRIALS = 100_000


def most_cells(experiment: Experiment) -> int:
    """At least as many cells as the grid has: some loads may not be played with each workload."""
    clients = len(experiment.clients) + bool(experiment.twice)
    pairs = clients * len(experiment.servers) + len(experiment.in_process)
    loads = [
        len(experiment.loads) if workload.loads is None else len(workload.loads)
        for workload in experiment.workloads
    ]
    return pairs * sum(loads)


def check_size(experiment: Experiment) -> None:
    """Refuse a plan that is too long to be made. Raises UsageError."""
    trials = most_cells(experiment) * experiment.blocks
    if trials > MAX_TRIALS:
        raise UsageError(
            f"{experiment.name}: {trials:,} trials are more than {MAX_TRIALS:,}",
            "fewer blocks, clients, servers, workloads or loads",
        )
