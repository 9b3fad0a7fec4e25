"""Processes that a child has started, also those that left its group and whose parent has ended.

This process adopts orphans, so all of them are found. An environment variable says whose child each
of them is. One that has cleared its environment, or was left by a cachemark that this one started,
has no owner: it ends with the last of the children that can have started it.
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
    """A child that runs: its mark, and when it started. Its session has its number."""

    variable: bytes
    start_ticks: int


_running: dict[int, _Running] = {}
_starting = threading.Lock()


def mark(name: str) -> dict[str, str]:
    """The environment variable by which the descendants of a child are found."""
    return {_MARK: name}


def adopt() -> None:
    """Become the parent of orphans. Where the kernel refuses, process groups have to do."""
    with contextlib.suppress(OSError):
        prctl.adopt_orphans()


@contextmanager
def starting() -> Generator[Callable[[int, str], None]]:
    """While a child is started, no thread looks for orphans. Gives a function to note the child."""

    def note(child: int, name: str) -> None:
        found = _read_process(child)
        _running[child] = _Running(f"{_MARK}={name}".encode(), found.start_ticks if found else 0)

    with _starting:
        yield note


def kill_all(child: int) -> None:
    """Kill what an ended child has left, and processes without an owner; reap our own."""
    with _starting:
        ended = _running.pop(child, None)
        if ended is None:  # another thread was earlier
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
    # Environments take long to read. All programs of the machine are looked at after each trial.
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
    """Whether a process descends from another, as far as the parents of those that ran say.

    One whose line breaks off may: its parent has ended while the others were read.
    """
    for _ in parents:
        if pid == ancestor:
            return True
        if pid not in parents:
            return pid != 0  # the parent of the first process
        pid = parents[pid]
    return True  # a circle: numbers were given again meanwhile


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
