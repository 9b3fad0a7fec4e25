"""What others took of the machine during a window, from two readings of /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from cachemark.host import counters
from cachemark.host.files import read
from cachemark.host.kernel_log import LogWatch
from cachemark.host.kernel_patterns import complaints
from cachemark.host.process import cpu_ns
from cachemark.model.outcome import HostNoise


class CpuTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Ticks of all CPUs since boot, as the first line of /proc/stat tells them."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int

    @property
    def total(self) -> int:
        """All of it; a guest's time is in `user` already."""
        return sum(msgspec.structs.astuple(self))

    def since(self, before: CpuTimes) -> CpuTimes:
        """What was added since an earlier reading."""
        names = self.__struct_fields__
        return CpuTimes(**{name: getattr(self, name) - getattr(before, name) for name in names})


def cpu_times(root: Path = Path("/")) -> CpuTimes | None:
    """A reading of /proc/stat; None where it cannot be read."""
    words = read(root / "proc/stat").partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):
        return None
    return CpuTimes(**dict(zip(CpuTimes.__struct_fields__, map(int, words[1:9]), strict=True)))


def steal_percent(window: CpuTimes) -> float | None:
    """The hypervisor's share of a window; None when no tick was counted in it."""
    return round(100 * window.steal / window.total, 2) if window.total > 0 else None


def foreign_percent(
    window: CpuTimes, own_ticks: float, *, interrupts_charged: bool
) -> float | None:
    """The share of a window that went to processes other than ours.

    `interrupts_charged`: the kernel counts an interrupt's time as time of the process that it
    interrupted, so our own ticks hold a part of it.
    """
    if window.total <= 0:
        return None
    busy = window.user + window.nice + window.system
    busy += window.irq + window.softirq if interrupts_charged else 0
    return round(100 * max(0.0, busy - own_ticks) / window.total, 2)


class Pauses:
    """How late sleeps end: a thread that only sleeps wakes late when the machine stands still."""

    # Below this it is the timer's and the interpreter's own lateness.
    FLOOR_NS = 1_000_000

    def __init__(self) -> None:
        self.longest_ns: int | None = None
        self.paused_ns = 0

    def slept(self, wanted_ns: int, took_ns: int) -> None:
        """A sleep that was to last so long lasted so long."""
        late_ns = max(0, took_ns - wanted_ns)
        self.longest_ns = max(self.longest_ns or 0, late_ns)
        if late_ns > self.FLOOR_NS:
            self.paused_ns += late_ns


class _Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at one end of a window."""

    at_ns: int
    wall_ns: int
    cpus: CpuTimes | None
    own_ns: int | None
    scheduled: tuple[int, int] | None
    counters: dict[str, int]


class NoiseProbe:
    """Reads /proc at both ends of a window: what others took of the machine meanwhile."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._own: list[int] = []
        self._awake: list[int] = []
        self._begin: _Reading | None = None
        self._mhz: list[float] = []
        self._log: LogWatch | None = None
        self.pauses = Pauses()

    def start(self, own_pids: list[int], awake_pid: int | None = None) -> None:
        """The window begins; `own_pids` are the processes of the trial besides this one.

        `awake_pid` keeps the CPUs awake, if one does: its CPU time is ours, its waiting nobody's.
        """
        self._own = own_pids
        self._log = LogWatch(self._root)
        self._awake = [] if awake_pid is None else [awake_pid]
        self._begin = self._reading()

    def glance(self) -> None:
        """Within the window: what is not a counter."""
        self._mhz += counters.mhz(self._root)

    def stop(self) -> HostNoise:
        """The window has ended. What could not be read at either end is absent."""
        begin, end = self._begin, self._reading()
        lines = self._log.close() if self._log else None
        load = os.getloadavg()[0]
        if begin is None:
            return HostNoise(load_1min=load)
        window = end.cpus.since(begin.cpus) if begin.cpus and end.cpus else None
        at_ns = end.at_ns - begin.at_ns
        return HostNoise(
            steal_percent=steal_percent(window) if window else None,
            foreign_cpu_percent=self._foreign(window, begin, end) if window else None,
            load_1min=load,
            window_ns=at_ns,
            counters=self._counted(begin, end),
            waited_percent=_waited(begin.scheduled, end.scheduled),
            clock_step_ns=end.wall_ns - begin.wall_ns - at_ns,
            longest_pause_ns=self.pauses.longest_ns,
            paused_ns=self.pauses.paused_ns,
            mhz=(min(self._mhz), max(self._mhz)) if self._mhz else None,
            kernel_log=None if lines is None else complaints(lines, within=True),
        )

    def _counted(self, begin: _Reading, end: _Reading) -> dict[str, int]:
        risen = counters.risen(begin.counters, end.counters)
        if self._awake:
            # Threads that give way wait whenever anything runs.
            risen.pop("cpu_pressure_us", None)
        return risen

    def _reading(self) -> _Reading:
        return _Reading(
            at_ns=time.monotonic_ns(),
            wall_ns=time.time_ns(),
            cpus=cpu_times(self._root),
            own_ns=self._own_ns(),
            scheduled=counters.waited_ns(self._own, self._root) if self._own else None,
            counters=counters.counters(self._root),
        )

    def _foreign(self, window: CpuTimes, begin: _Reading, end: _Reading) -> float | None:
        if begin.own_ns is None or end.own_ns is None:
            return None
        ticks = (end.own_ns - begin.own_ns) * os.sysconf("SC_CLK_TCK") / 1e9
        # The kernel has this file when it accounts for interrupts apart from processes.
        apart = (self._root / "proc/pressure/irq").exists()
        return foreign_percent(window, ticks, interrupts_charged=not apart)

    def _own_ns(self) -> int | None:
        """CPU time of our processes; None when one of them is gone, and its time with it."""
        used = [cpu_ns(pid) for pid in [*self._own, *self._awake, os.getpid()]]
        known = [ns for ns in used if ns is not None]
        return sum(known) if len(known) == len(used) else None


def _waited(begin: tuple[int, int] | None, end: tuple[int, int] | None) -> float | None:
    """How long threads stood ready without a CPU, in percent of what they ran."""
    if begin is None or end is None or end[0] <= begin[0] or end[1] < begin[1]:
        return None
    return round(100 * (end[1] - begin[1]) / (end[0] - begin[0]), 2)
