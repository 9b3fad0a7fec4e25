"""What others took of the machine during a window, from two readings of /proc."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cachemark.host.files import read
from cachemark.outcome import HostNoise
from cachemark.process import cpu_ns


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


class NoiseProbe:
    """Reads /proc at both ends of a window: what others took of the machine meanwhile."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._own: list[int] = []
        self._begin: CpuTimes | None = None
        self._own_begin: int | None = None

    def start(self, own_pids: list[int]) -> None:
        """The window begins; `own_pids` are the processes of the trial besides this one."""
        self._own = [*own_pids, os.getpid()]
        self._own_begin = self._own_ns()
        self._begin = cpu_times(self._root)

    def stop(self) -> HostNoise:
        """The window has ended. What could not be read at either end is absent."""
        end, own_end = cpu_times(self._root), self._own_ns()
        load = os.getloadavg()[0]
        if self._begin is None or end is None:
            return HostNoise(load_1min=load)
        window = end.since(self._begin)
        return HostNoise(
            steal_percent=steal_percent(window),
            foreign_cpu_percent=self._foreign(window, own_end),
            load_1min=load,
        )

    def _foreign(self, window: CpuTimes, own_end: int | None) -> float | None:
        if self._own_begin is None or own_end is None:
            return None
        ticks = (own_end - self._own_begin) * os.sysconf("SC_CLK_TCK") / 1e9
        # The kernel has this file when it accounts for interrupts apart from processes.
        apart = (self._root / "proc/pressure/irq").exists()
        return foreign_percent(window, ticks, interrupts_charged=not apart)

    def _own_ns(self) -> int | None:
        """CPU time of our processes; None when one of them is gone, and its time with it."""
        used = [cpu_ns(pid) for pid in self._own]
        known = [ns for ns in used if ns is not None]
        return sum(known) if len(known) == len(used) else None
