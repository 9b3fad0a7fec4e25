"""Disturbances of a window: readings of /proc at its start and end, and samples within."""

import os
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.host import counters
from cachemark.host.cpu_meter import family_ns
from cachemark.host.files import read
from cachemark.host.kernel_log import KernelLogTail
from cachemark.host.process import cpu_ns
from cachemark.model.kernel_patterns import matching_lines
from cachemark.model.outcome import HostNoise

# Less than this is the normal delay of the timer and the interpreter.
FLOOR_NS = 1_000_000
# The interval for readings of the scheduler's account: older waits must not excuse a pause.
_FRESH_NS = 1_000_000_000
# A pause of the machine shows as a late wake-up. Each wake-up may cost a measured thread some µs of
# its CPU: ten a second are far too few to show in p99.9.
_SLEEP_NS = 100_000_000


class CpuTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Time of all CPUs since boot in clock ticks, from the first line of /proc/stat."""

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
        """The sum. (Guest time is included in `user`.)"""
        return sum(msgspec.structs.astuple(self))

    def since(self, before: "CpuTimes") -> "CpuTimes":
        """The difference to an earlier reading."""
        names = self.__struct_fields__
        return CpuTimes(**{name: getattr(self, name) - getattr(before, name) for name in names})


def cpu_times(root: Path = Path("/")) -> CpuTimes | None:
    """Read /proc/stat; None if it cannot be read."""
    words = read(root / "proc/stat").partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):
        return None
    return CpuTimes(**dict(zip(CpuTimes.__struct_fields__, map(int, words[1:9]), strict=True)))


def steal_percent(window: CpuTimes) -> float | None:
    """CPU time taken by the hypervisor, in percent; None if the window has no ticks."""
    return round(100 * window.steal / window.total, 2) if window.total > 0 else None


def foreign_percent(
    window: CpuTimes, own_ticks: float, *, interrupts_charged: bool
) -> float | None:
    """CPU time of processes other than ours, in percent; None if the window has no ticks.

    `own_ticks` is the CPU time of our processes. `interrupts_charged`: the kernel adds the time of
    an interrupt to the process that it interrupted, so `own_ticks` includes a part of it.
    """
    if window.total <= 0:
        return None
    busy = window.user + window.nice + window.system
    busy += window.irq + window.softirq if interrupts_charged else 0
    return round(100 * max(0.0, busy - own_ticks) / window.total, 2)


class _Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the machine at the start or end of a window."""

    at_ns: int
    wall_ns: int
    cpus: CpuTimes | None
    own_ns: int | None
    scheduled: tuple[int, int] | None
    counters: dict[str, int]


class NoiseMonitor:
    """Measures the disturbances of a window: call `start`, then `stop`."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._own: list[int] = []
        self._awake: list[int] = []
        self._begin: _Reading | None = None
        self._mhz: list[float] = []
        self._log: KernelLogTail | None = None
        self.pauses = Pauses(root)

    def start(
        self,
        workers: Sequence[int],
        servers: Sequence[int],
        awake_pid: int | None = None,
    ) -> None:
        """Start the window. `servers`: also the processes between clients and servers.

        `awake_pid` is the process that keeps the CPUs awake, if any. Its CPU time counts as ours;
        its time on run queues does not count.
        """
        self._own = [*workers, *servers]
        self._log = KernelLogTail(self._root)
        self._awake = [] if awake_pid is None else [awake_pid]
        self.pauses.watch(workers, servers)
        self._begin = self._reading()

    def sample_frequencies(self) -> None:
        """Sample the CPU frequencies. Call this within the window."""
        self._mhz += counters.cpu_frequencies_mhz(self._root)

    @contextmanager
    def watching(self) -> Generator[None]:
        """Look for pauses within the context, in a thread that asks no server.

        A server that stands still would hide the stop of a client.
        """
        ended = threading.Event()

        def watch() -> None:
            began_ns = time.monotonic_ns()
            while not ended.wait(_SLEEP_NS / 1e9):
                self.pauses.slept(_SLEEP_NS, time.monotonic_ns() - began_ns)
                began_ns = time.monotonic_ns()

        thread = threading.Thread(target=watch, name="pauses", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def stop(self) -> HostNoise:
        """End the window. Figures that were unreadable at its start or end are missing."""
        begin, end = self._begin, self._reading()
        lines = self._log.finish() if self._log else None
        load = os.getloadavg()[0]
        if begin is None:
            return HostNoise(load_1min=load)
        window = end.cpus.since(begin.cpus) if begin.cpus and end.cpus else None
        at_ns = end.at_ns - begin.at_ns
        return HostNoise(
            cpus=os.cpu_count(),
            steal_percent=steal_percent(window) if window else None,
            foreign_cpu_percent=self._foreign(window, begin, end) if window else None,
            load_1min=load,
            window_ns=at_ns,
            counters=self._counter_increases(begin, end),
            waited_percent=_waited_percent(begin.scheduled, end.scheduled),
            clock_step_ns=end.wall_ns - begin.wall_ns - at_ns,
            longest_pause_ns=self.pauses.longest_ns,
            paused_ns=self.pauses.paused_ns,
            longest_halt_ns=self.pauses.longest_halt_ns,
            stopped_ns=self.pauses.stopped_ns,
            server_stopped_ns=self.pauses.server_stopped_ns,
            mhz=(min(self._mhz), max(self._mhz)) if self._mhz else None,
            kernel_log=None if lines is None else matching_lines(lines, within_window=True),
        )

    def _counter_increases(self, begin: _Reading, end: _Reading) -> dict[str, int]:
        increases = counters.increases(begin.counters, end.counters)
        if self._awake:
            # The threads that keep CPUs awake wait whenever anything else runs.
            increases.pop("cpu_pressure_us", None)
        return increases

    def _reading(self) -> _Reading:
        return _Reading(
            at_ns=time.monotonic_ns(),
            wall_ns=time.time_ns(),
            cpus=cpu_times(self._root),
            own_ns=self._own_ns(),
            scheduled=counters.run_and_wait_ns(self._own, self._root) if self._own else None,
            counters=counters.counters(self._root),
        )

    def _foreign(self, window: CpuTimes, begin: _Reading, end: _Reading) -> float | None:
        if begin.own_ns is None or end.own_ns is None:
            return None
        ticks = (end.own_ns - begin.own_ns) * os.sysconf("SC_CLK_TCK") / 1e9
        # The kernel has this file if it accounts for interrupts separately from processes.
        separate = (self._root / "proc/pressure/irq").exists()
        return foreign_percent(window, ticks, interrupts_charged=not separate)

    def _own_ns(self) -> int | None:
        """CPU time of our processes; None if one has ended, since its time is then unknown."""
        used = [*map(family_ns, [*self._own, *self._awake]), cpu_ns(os.getpid())]
        known = [ns for ns in used if ns is not None]
        return sum(known) if len(known) == len(used) else None


def _waited_percent(begin: tuple[int, int] | None, end: tuple[int, int] | None) -> float | None:
    """The time that threads were runnable without a CPU, in percent of the time that they ran."""
    if begin is None or end is None or end[0] <= begin[0] or end[1] < begin[1]:
        return None
    return round(100 * (end[1] - begin[1]) / (end[0] - begin[0]), 2)


class Pauses:
    """Sums up pauses: call `watch`, then `slept` after each sleep.

    The delay with which a sleeping thread wakes up is long if the machine pauses.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._workers: Sequence[int] = ()
        self._servers: Sequence[int] = ()
        self._waited_ns: int | None = None
        self._read_at_ns = 0
        self.longest_ns: int | None = None
        self.paused_ns = self.stopped_ns = self.server_stopped_ns = 0
        self.longest_halt_ns: int | None = None

    def watch(self, workers: Sequence[int], servers: Sequence[int]) -> None:
        """From now on look at these processes, and forget earlier observations."""
        self._workers, self._servers = workers, servers
        self.stopped_ns, self.server_stopped_ns, self.longest_halt_ns = 0, 0, None
        now_ns = time.monotonic_ns()
        if now_ns - self._read_at_ns > _FRESH_NS:
            self._read_at_ns, self._waited_ns = now_ns, self._waited()

    def slept(self, wanted_ns: int, took_ns: int) -> None:
        """A thread of this process has slept: the requested and the real duration.

        A process that is stopped now was stopped during the sleep.
        """
        if any(is_stopped(pid, self._root) for pid in self._workers):
            self.stopped_ns += took_ns
        if any(is_stopped(pid, self._root) for pid in self._servers):
            self.server_stopped_ns += took_ns
        late_ns = max(0, took_ns - wanted_ns)
        self.longest_ns = max(self.longest_ns or 0, late_ns)
        if late_ns <= FLOOR_NS:
            return
        self.paused_ns += late_ns
        before, self._waited_ns = self._waited_ns, self._waited()
        if before is not None and self._waited_ns is not None:
            # Another thread may have waited for a CPU with the interpreter's lock: all count.
            halted_ns = max(0, late_ns - max(0, self._waited_ns - before))
            self.longest_halt_ns = max(self.longest_halt_ns or 0, halted_ns)

    def _waited(self) -> int | None:
        """The ns that this process's threads were runnable without a CPU; None if unknown."""
        scheduled = counters.run_and_wait_ns([os.getpid()], self._root)
        return scheduled[1] if scheduled else None


def is_stopped(pid: int, root: Path = Path("/")) -> bool:
    """Whether a signal or a debugger has stopped a process, or one that it has forked."""
    forks = read(root / f"proc/{pid}/task/{pid}/children").split()
    # The name in parentheses may hold anything, also spaces and parentheses.
    state = read(root / f"proc/{pid}/stat").rpartition(")")[2].split()
    return state[:1] in (["T"], ["t"]) or any(is_stopped(int(fork), root) for fork in forks)
