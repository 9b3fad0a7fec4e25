"""CPU time of processes and their children, cheap enough to be read between two slices."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from cachemark.host.files import read
from cachemark.host.process import cpu_clock

_NS_IN_TICK = 10_000_000
UNKNOWN_NS = -1


class CpuMeter:
    """The CPU time of some processes, with the children that they had when this was made.

    A reading is one system call for each process, of about a microsecond, and is exact to the
    nanosecond (the scheduler's own account, over all threads).
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._clocks = [cpu_clock(pid) for first in pids for pid in family(first)]

    def read_ns(self) -> int:
        """CPU time since the start of the processes; UNKNOWN_NS if there is none or one is gone."""
        if not self._clocks:
            return UNKNOWN_NS
        try:
            return sum(map(time.clock_gettime_ns, self._clocks))
        except OSError:
            return UNKNOWN_NS


class StealMeter:
    """CPU time that the hypervisor took from all CPUs of this machine, in ns since boot."""

    _TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    _STEAL_FIELD = 8
    _FIRST_LINE_BYTES = 256

    def __init__(self, path: Path = Path("/proc/stat")) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read_ns(self) -> int:
        """The first line of /proc/stat has it in clock ticks."""
        line = os.pread(self._file, self._FIRST_LINE_BYTES, 0).split(b"\n", 1)[0].split()
        return int(line[self._STEAL_FIELD]) * self._TICK_NS if len(line) > self._STEAL_FIELD else 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def family(pid: int, root: Path = Path("/proc"), *, of_main_threads: bool = False) -> list[int]:
    """A process and all of its descendants that are alive, or those that main threads started."""
    pids = [pid]
    for parent in pids:
        threads = root / str(parent) / "task"
        try:
            looked = [threads / str(parent)] if of_main_threads else list(threads.iterdir())
        except OSError:
            continue
        for thread in looked:
            pids += map(int, read(thread / "children").split())
    return pids


def run_delay_ns(pids: list[int], root: Path = Path("/")) -> int:
    """Time on run queues since their start, of all threads of processes and of their children.

    Includes the time that the hypervisor took from all CPUs (steal), which the scheduler does not
    know. Threads that have ended are not included. 0 if the kernel has no such statistics.
    """
    return sum(process_run_delay_ns(pid, root) for pid in pids) + _steal_ns(root)


def process_run_delay_ns(pid: int, root: Path = Path("/")) -> int:
    """The same of one process with its children, without steal; 0 if it has ended."""
    waited = 0
    for task in (root / "proc" / str(pid) / "task").glob("*"):
        # The fields: ns on a CPU, ns on a run queue, number of time slices.
        words = _read(task / "schedstat").split()
        waited += int(words[1]) if len(words) == 3 else 0
        children = map(int, _read(task / "children").split())
        waited += sum(process_run_delay_ns(child, root) for child in children)
    return waited


def _steal_ns(root: Path) -> int:
    words = _read(root / "proc/stat").partition("\n")[0].split()
    return int(words[8]) * _NS_IN_TICK if len(words) > 8 else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the thread or process has ended
        return ""
