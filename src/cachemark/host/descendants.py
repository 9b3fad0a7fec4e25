"""Processes that a child has started, also those that left its group and whose parent has ended.

This process adopts orphans, so none of them can get away; an environment variable says whose child
each of them is.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from cachemark.host import prctl

_MARK = "CACHEMARK_CHILD"
_PROC = Path("/proc")
_MAX_ROUNDS = 1000


def mark(name: str) -> dict[str, str]:
    """The environment variable by which the descendants of a child are found."""
    return {_MARK: name}


def adopt() -> None:
    """Become the parent of orphans. Where the kernel refuses, process groups have to do."""
    with contextlib.suppress(OSError):
        prctl.adopt_orphans()


def kill_marked(name: str) -> None:
    """Kill all processes with the mark, wherever they are, and reap those that are ours."""
    wanted = f"{_MARK}={name}".encode()
    # Whoever forks while this looks has children with the mark: they are found the next time.
    for _ in range(_MAX_ROUNDS):
        pids = list(_marked(wanted))
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _marked(wanted: bytes) -> Iterator[int]:
    own = os.getpid()
    for folder in _PROC.iterdir():
        if folder.name.isdecimal() and int(folder.name) != own:
            with contextlib.suppress(OSError):
                # A process that has ended has no environment any more.
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
