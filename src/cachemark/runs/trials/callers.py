"""Turns a load's callers into threads and connections of each worker, and into its demands."""

from collections.abc import Sequence
from typing import NamedTuple

from cachemark.analysis.number_format import count_of
from cachemark.endpoints.capabilities import Demand
from cachemark.endpoints.clients import Concurrency
from cachemark.endpoints.servers import RunningServer
from cachemark.model.errors import UnsupportedError
from cachemark.model.experiment import Load, Workload
from cachemark.model.protocol import Prepare, Ready
from cachemark.model.server_stats import ServerStats
from cachemark.runs.audit.claims import needed_kinds


class Callers(NamedTuple):
    """Threads and connections of each worker, with notes if its callers are no threads."""

    threads: int
    connections: int
    notes: list[str]


def processes_of(load: Load, concurrency: Concurrency) -> int:
    """The number of workers: callers that are processes have one each."""
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


def too_many_connections(connections: int, servers: Sequence[ServerStats]) -> str:
    """Why a server does not take `connections`; empty if each does, or it is unknown.

    Some libraries open more of them: these fail on their own.
    """
    for stats in servers:
        most, others = stats.number("max_connections"), stats.number("curr_connections")
        if most is not None and connections + (others or 0) > most:
            return (
                f"{count_of(connections, 'connection')} at once, and the server takes {most:,} "
                f"(it has {others or 0:,} already)"
            )
    return ""


def refuse_connections(connections: int, server: RunningServer) -> None:
    """Raise UnsupportedError if a server does not take `connections`; a proxy shares its own."""
    if len(server.addresses) != len(server.members):
        return
    if why := too_many_connections(connections, server.member_stats()):
        remedy = "fewer callers, or a server that takes more, such as memcached:connections=2000"
        raise UnsupportedError(why, remedy)


def demand_of(request: Prepare, workload: Workload, load: Load, *, slices: bool) -> Demand:
    """The capabilities that a worker needs for a cell that is prepared like this. Pure."""
    return Demand(
        prepare=request,
        kinds=needed_kinds(workload),
        open_loop=load.schedule != "closed",
        think=bool(load.think),
        slices=slices,
    )
