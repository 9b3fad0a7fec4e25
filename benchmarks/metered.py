"""CPU time, hits and memory of any load generator, measured from outside while it runs.

The window lies in the middle of the run, so that a program's start, its connecting and its summary
do not count. Operations are the hits and stores that the server counted, not those that the program
claims.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from cachemark.endpoints.servers.control_connection import Control
from cachemark.endpoints.servers.running import process_use
from cachemark.host import process
from cachemark.host.cpu_meter import family
from cachemark.model.errors import TrialError

# A program runs for this much longer than the window, which it must not end in.
SPARE_S = 20.0
# From the first hit to the window.
SETTLE_S = 0.5
# With this many operations, each connection has had its turn, if turns are fair.
TURNS = 2
PATIENCE_S = 20.0
POLL_S = 0.02
# A miss is cheaper than a hit, so a run with more of them is not comparable.
MAX_MISSES = 0.01


class FailedError(Exception):
    """A program failed; the text says which one, and how."""


class Metered(NamedTuple):
    """The work of a program in the window; the memory is its peak since its start."""

    ops: int
    cpu_us: float
    elapsed_s: float
    peak_bytes: int

    @property
    def cost_us(self) -> float:
        """CPU time per operation."""
        return self.cpu_us / self.ops

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.ops / self.elapsed_s


class Reading(NamedTuple):
    """The state of a run at one moment."""

    at_s: float
    hits: int
    misses: int
    sets: int
    cpu_ns: int
    peak_bytes: int


def pinned(cpus: set[int], *command: str) -> list[str]:
    """The command, restricted to some CPUs."""
    return ["taskset", "-c", ",".join(map(str, cpus)), *command]


def metered(command: list[str], cpus: set[int], address: str, seconds: float) -> Metered:
    """Start a program, measure a window of it, and stop it. Raises FailedError."""
    name = command[0].rsplit("/", 1)[-1]
    control = Control(address)
    try:
        first = _counter(control, "get_hits") + 1
        with process.start(command, cpus=",".join(map(str, cpus))) as child:
            _await(name, child, control, "get_hits", first)
            time.sleep(SETTLE_S)
            before = _read(name, child, control)
            time.sleep(seconds)
            after = _read(name, child, control)
            child.stop(grace_s=0)
    except (OSError, TrialError) as error:
        raise FailedError(f"{name}: {error}") from error
    finally:
        control.close()
    hits, misses = after.hits - before.hits, after.misses - before.misses
    if not hits or misses > MAX_MISSES * hits:
        raise FailedError(f"{name}: {hits} hits and {misses} misses")
    ops = hits + after.sets - before.sets
    cpu_us = (after.cpu_ns - before.cpu_ns) / 1e3
    if cpu_us <= 0:
        raise FailedError(f"{name}: the process that does the work was not found")
    return Metered(ops, cpu_us, after.at_s - before.at_s, after.peak_bytes)


def peak_bytes(command: list[str], cpus: set[int], address: str, connections: int) -> int:
    """The peak memory of a program while it plays on all its connections. Raises FailedError."""
    name = command[0].rsplit("/", 1)[-1]
    control = Control(address)
    try:
        # Not the open ones: the server may still close the last program's.
        opened = _counter(control, "total_connections") + connections
        with process.start(command, cpus=",".join(map(str, cpus))) as child:
            _await(name, child, control, "total_connections", opened)
            played = _counter(control, "cmd_get") + TURNS * connections
            _await(name, child, control, "cmd_get", played)
            time.sleep(SETTLE_S)
            found = _read(name, child, control).peak_bytes
            child.stop(grace_s=0)
    except (OSError, TrialError) as error:
        raise FailedError(f"{name}: {error}") from error
    finally:
        control.close()
    return found


def _counter(control: Control, counter: str) -> int:
    return control.stats().number(counter) or 0


def _await(name: str, child: process.Child, control: Control, counter: str, least: int) -> None:
    """Wait until a counter of the server has grown so far. Raises FailedError."""
    deadline = time.monotonic() + PATIENCE_S
    while (reached := _counter(control, counter)) < least:
        if child.exited() is not None:
            raise FailedError(f"{name} ended with {child.exited()}: {child.last_stderr_line()}")
        if time.monotonic() > deadline:
            raise FailedError(
                f"{name}: {counter} is {reached}, not {least}, after {PATIENCE_S:g} s"
            )
        time.sleep(POLL_S)


def _read(name: str, child: process.Child, control: Control) -> Reading:
    stats = control.stats()
    # YCSB is a script that starts Java: the work is done by a child.
    uses = [use for pid in family(child.pid) if (use := process_use(pid))]
    if not uses or child.exited() is not None:
        raise FailedError(f"{name} ended in the window: {child.last_stderr_line()}")
    cpu_ns, peak = sum(use.cpu_ns for use in uses), sum(use.rss_peak_bytes for use in uses)
    hits, misses, sets = (stats.number(name) or 0 for name in ("get_hits", "get_misses", "cmd_set"))
    return Reading(time.monotonic(), hits, misses, sets, cpu_ns, peak)
