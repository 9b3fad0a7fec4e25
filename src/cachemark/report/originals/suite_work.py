"""Does a trial play the work of its suite? Typed options may have changed it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cachemark.model import suites
from cachemark.model.experiment import Experiment, Workload
from cachemark.model.outcome import Outcome


def split(suite: str, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[str]]:
    """The trials with the suite's own work, and the names of what plays other work."""
    grids = [suites.find(suite)]
    if grids[0].quick is not None:
        grids.append(suites.find(suite, quick=True))
    own: list[Outcome] = []
    others: list[str] = []
    for outcome in outcomes:
        if any(_plays(grid, outcome) for grid in grids):
            own.append(outcome)
        else:
            others.append(f"{outcome.trial.cell.workload}, {outcome.trial.cell.load}")
    return own, list(dict.fromkeys(others))


def _plays(grid: Experiment, outcome: Outcome) -> bool:
    """Any number of threads is the suite's own: a load's name has it."""
    threads = outcome.load.threads
    loads = [
        msgspec.structs.replace(load, name=outcome.load.name, threads=threads)
        for load in grid.loads
    ]
    played = _without_loads(outcome.workload)
    return outcome.load in loads and played in map(_without_loads, grid.workloads)


def _without_loads(workload: Workload) -> Workload:
    return msgspec.structs.replace(workload, loads=None)
