"""Finds all processes that a child has started, even if they left its group or lost their parent.

This process adopts orphans, so that it finds all of them. An environment variable names the child
that each belongs to. A process that has cleared its environment, or that an inner cachemark has
left, has no owner: it ends with the last of the children that can have started it.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cachemark.host import prctl

_MARK = "CACHEMARK_CHILD"
_PROC = Path("/proc")
_MAX_ROUNDS = 1000
_LONGEST_STAT = 4096
# Fields of /proc/PID/stat behind the name, which may have spaces and brackets: see proc(5).
_PARENT, _SESSION, _START = 1, 3, 19


class _Process(NamedTuple):
    parent: int
    session: int
    start_ticks: int


class _Running(NamedTuple):
    """A child that runs: its mark, and its start time. Its process id is also its session's."""

    variable: bytes
    start_ticks: int


_running: dict[int, _Running] = {}
_starting = threading.Lock()


def mark(name: str) -> dict[str, str]:
    """The environment variable that identifies the descendants of a child."""
    return {_MARK: name}


def adopt() -> None:
    """Become the parent of orphans. If the kernel refuses, process groups must suffice."""
    with contextlib.suppress(OSError):
        prctl.adopt_orphans()


@contextmanager
def starting() -> Generator[Callable[[int, str], None]]:
    """Let no thread look for orphans while a child starts. Yields a function to note the child."""

    def note(child: int, name: str) -> None:
        found = _read_process(child)
        _running[child] = _Running(f"{_MARK}={name}".encode(), found.start_ticks if found else 0)

    with _starting:
        yield note


def kill_all(child: int) -> None:
    """Kill the descendants of an ended child, and processes without an owner; reap our own."""
    with _starting:
        ended = _running.pop(child, None)
        if ended is None:  # another thread has done it
            return
        # A process that forks during this search has children: the next search finds them.
        for _ in range(_MAX_ROUNDS):
            pids = list(_strays(ended.variable))
            if not pids:
                return
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in pids:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def _strays(wanted: bytes) -> Iterator[int]:
    own = os.getpid()
    pids = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208  # of all
    processes = {pid: found for pid in pids if (found := _read_process(pid)) is not None}
    living = {running.variable for running in _running.values()}
    parents = {pid: found.parent for pid, found in processes.items()}
    # Environments take long to read, and this looks at all programs of the machine after a trial.
    for pid in [pid for pid in processes if pid != own and may_descend(pid, own, parents)]:
        variables = _variables(pid)
        if wanted in variables or (variables.isdisjoint(living) and _has_no_owner(pid, processes)):
            yield pid


def _variables(pid: int) -> set[bytes]:
    with contextlib.suppress(OSError):
        # A process that has ended has no environment any more.
        return set((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    return set()


def _read_process(pid: int) -> _Process | None:
    with contextlib.suppress(OSError):
        stat = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY)
        try:
            fields = os.read(stat, _LONGEST_STAT).rpartition(b")")[2].split()
        finally:
            os.close(stat)
        return _Process(int(fields[_PARENT]), int(fields[_SESSION]), int(fields[_START]))
    return None


def may_descend(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    """Whether a process can descend from another, by the parents of all processes.

    True if the line of parents breaks off: a parent may have ended while others were read.
    """
    for _ in parents:
        if pid == ancestor:
            return True
        if pid not in parents:
            return pid != 0  # the parent of the first process
        pid = parents[pid]
    return True  # a circle: the kernel has reused an id meanwhile


def _has_no_owner(pid: int, processes: dict[int, _Process]) -> bool:
    """Whether a process descends from an orphan of ours that no running child can have started."""
    own, eldest, start_ticks = os.getpid(), pid, processes[pid].start_ticks
    while processes[eldest].parent != own:
        eldest = processes[eldest].parent
        if eldest not in processes:
            return False
    session = processes[eldest].session
    return (
        session != os.getsid(0)
        and session not in _running
        and all(running.start_ticks > start_ticks for running in _running.values())
    )
