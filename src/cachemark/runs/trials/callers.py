"""How a load's callers become threads and connections of each worker, and what it must offer."""

from __future__ import annotations

from typing import NamedTuple

from cachemark.endpoints.capabilities import Demand
from cachemark.endpoints.clients import Concurrency
from cachemark.model.experiment import Load, Workload
from cachemark.model.protocol import Prepare, Ready
from cachemark.runs.audit.claims import needed_kinds


class Callers(NamedTuple):
    """Threads and connections of each worker, and notes where its callers are no threads."""

    threads: int
    connections: int
    notes: list[str]


def processes_of(load: Load, concurrency: Concurrency) -> int:
    """How many workers: callers that are processes have one each."""
    return load.processes * (load.threads if concurrency == "processes" else 1)


def callers_of(load: Load, concurrency: Concurrency, ready: Ready) -> Callers:
    """The callers of each worker of a client with this concurrency."""
    threads, connections = load.threads, load.connections or load.threads
    notes: list[str] = []
    if threads > 1 and concurrency in ("processes", "forks"):
        notes.append(f"{threads} processes instead of {threads} threads")
    if concurrency == "processes":
        return Callers(1, max(1, connections // threads), notes)
    if threads > 1 and "threads" not in ready.capabilities:
        notes.append(f"{threads} tasks on one event loop instead of {threads} threads")
        return Callers(1, connections, notes)
    return Callers(threads, connections, notes)


def demand_of(request: Prepare, workload: Workload, load: Load, *, slices: bool) -> Demand:
    """What a worker must be able to do for a cell that is prepared like this. Pure."""
    return Demand(
        prepare=request,
        kinds=needed_kinds(workload),
        open_loop=load.schedule != "closed",
        think=bool(load.think),
        slices=slices,
    )
