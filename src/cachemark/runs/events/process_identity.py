"""Whether the process that wrote something still lives."""

from __future__ import annotations

import os
from pathlib import Path

from cachemark.host.files import read

# Of the fields of /proc/PID/stat, counted from the one after the name.
_START_FIELD = 19


def process_start(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty if there is no such process."""
    fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[_START_FIELD] if len(fields) > _START_FIELD and fields[0] != "Z" else ""


def own_identity() -> tuple[int, str]:
    """The number of this process, and when it began."""
    return os.getpid(), process_start(os.getpid())
