"""CPU time of processes and their children, cheap enough to be read between two slices."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cachemark.host.files import read
from cachemark.host.process import cpu_clock, cpu_ns

UNKNOWN_NS = -1


class CpuMeter:
    """The CPU time of some processes, and of their children at the meter's creation.

    A reading is one system call for each process, of about a microsecond, and is exact to the
    nanosecond (the scheduler's own account, over all threads).
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._clocks = [cpu_clock(pid) for first in pids for pid in family(first)]

    def read_ns(self) -> int:
        """CPU time since their start; UNKNOWN_NS without a process, or if one is gone."""
        if not self._clocks:
            return UNKNOWN_NS
        try:
            return sum(map(time.clock_gettime_ns, self._clocks))
        except OSError:
            return UNKNOWN_NS


class QueueMeter:
    """The time that the threads of some processes have been runnable without a CPU.

    It has the processes that `CpuMeter` has. A reading takes some microseconds for each thread.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._folders = [Path(f"/proc/{pid}/task") for first in pids for pid in family(first)]

    def read_ns(self) -> dict[str, int]:
        """The time of each thread in ns; empty if the kernel does not report it."""
        found: dict[str, int] = {}
        for folder in self._folders:
            try:
                for thread in folder.iterdir():
                    found[thread.name] = _queued_ns(thread / "schedstat")
            except (OSError, IndexError):  # it has ended, or there is no such file
                continue
        return found


def waited_ns(first: Mapping[str, int], last: Mapping[str, int]) -> int:
    """The time between two readings of a `QueueMeter`; UNKNOWN_NS if the second has none."""
    return sum(ns - first.get(of, 0) for of, ns in last.items()) if last else UNKNOWN_NS


def run_delay_ns(pids: Sequence[int]) -> int:
    """Time on run queues of all threads of processes and their children, plus steal of all CPUs.

    The scheduler's times do not include steal. 0 if the kernel has no such statistics.
    """
    steal = StealMeter()
    try:
        return sum(QueueMeter(pids).read_ns().values()) + steal.read_ns()
    finally:
        steal.close()


def _queued_ns(path: Path) -> int:
    """The second field of a thread's schedstat: ns on a run queue."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(file, 128).split()[1])
    finally:
        os.close(file)


class StealMeter:
    """CPU time that the hypervisor took from all CPUs of this machine, in ns since boot."""

    _TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    _STEAL_FIELD = 8
    _FIRST_LINE_BYTES = 256

    def __init__(self, path: Path = Path("/proc/stat")) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read_ns(self) -> int:
        """The time now, from the first line of /proc/stat."""
        line = os.pread(self._file, self._FIRST_LINE_BYTES, 0).split(b"\n", 1)[0].split()
        return int(line[self._STEAL_FIELD]) * self._TICK_NS if len(line) > self._STEAL_FIELD else 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def family_ns(pid: int) -> int | None:
    """CPU time of a process, its descendants, and those that ended; None if it is gone.

    A lane of a client may be a process, which ends with its run. The kernel adds its time to the
    parent's that waits for it, in ticks.
    """
    used = cpu_ns(pid)
    if used is None:
        return None
    tick_ns, alive = 1_000_000_000 // os.sysconf("SC_CLK_TCK"), family(pid)
    stats = [read(Path(f"/proc/{each}/stat")).rpartition(")")[2].split() for each in alive]
    ended_ns = tick_ns * sum(int(ticks) for stat in stats for ticks in stat[13:15])
    return used + sum(cpu_ns(each) or 0 for each in alive[1:]) + ended_ns


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
