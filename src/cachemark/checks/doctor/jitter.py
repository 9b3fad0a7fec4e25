"""Checks that take a second: how often this machine stops a program that only reads a clock."""

import os
import time
from pathlib import Path

import msgspec

from cachemark.host.noise import CpuTimes, cpu_times, foreign_percent, steal_percent
from cachemark.host.process import cpu_ns
from cachemark.model.machine_limits import FOREIGN, STEAL, Check, Limits, info_check, limit_check

SAMPLE_S = 1.0
_READS = 20_000
_GAP = Limits(unit="µs", warn=100)
_LATE = Limits(unit="µs late", warn=1000)
# Reading a clock from Python takes 50 to 100 ns; a clock behind a system call takes far more.
_READ_COST = Limits(unit="ns", warn=250)


class ClockGaps(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of a thread that reads the clock in a loop."""

    longest_ns: int
    backward: int


def spin(until_ns: int) -> ClockGaps:
    """Read the clock in a loop until `until_ns`."""
    longest, backward = 0, 0
    before = time.perf_counter_ns()
    while before < until_ns:
        now = time.perf_counter_ns()
        gap = now - before
        if gap > longest:
            longest = gap
        elif gap < 0:
            backward += 1
        before = now
    return ClockGaps(longest_ns=longest, backward=backward)


def jitter_checks(
    cpus: list[int], root: Path = Path("/"), length_s: float = SAMPLE_S
) -> list[Check]:
    """Spin on each usable CPU in turn, for `length_s` in all; checks of pauses and of steal."""
    before, own_before = cpu_times(root), cpu_ns(os.getpid()) or 0
    gaps = _on_each(cpus, length_s)
    after, own_after = cpu_times(root), cpu_ns(os.getpid()) or 0
    window = after.since(before) if before and after else None
    own_ticks = (own_after - own_before) * os.sysconf("SC_CLK_TCK") / 1e9
    return [
        *_stolen(after, window),
        _foreign(window, own_ticks),
        *_gaps(gaps),
        _read_cost(),
        _late_sleeps(length_s / 4),
    ]


def _on_each(cpus: list[int], length_s: float) -> list[ClockGaps]:
    usable = os.sched_getaffinity(0)
    gaps: list[ClockGaps] = []
    try:
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
            gaps.append(spin(time.perf_counter_ns() + int(length_s / len(cpus) * 1e9)))
    finally:
        os.sched_setaffinity(0, usable)
    return gaps


def _stolen(since_boot: CpuTimes | None, window: CpuTimes | None) -> list[Check]:
    boot = steal_percent(since_boot) if since_boot else None
    now = steal_percent(window) if window else None
    return [
        info_check("steal since boot", "" if boot is None else f"{boot:g} % of CPU time"),
        limit_check(
            "steal", now, STEAL, "the host is shared: use a dedicated machine, or dedicated CPUs"
        ),
    ]


def _foreign(window: CpuTimes | None, own_ticks: float) -> Check:
    figure = foreign_percent(window, own_ticks, interrupts_charged=False) if window else None
    return limit_check("cpu used by others", figure, FOREIGN, "stop the other programs")


def _gaps(gaps: list[ClockGaps]) -> list[Check]:
    longest_us = max(each.longest_ns for each in gaps) / 1e3
    backward = sum(each.backward for each in gaps)
    return [
        limit_check(
            "longest pause",
            longest_us,
            _GAP,
            "percentiles near or below this value are caused by the machine, not by the server",
        ),
        Check(
            name="clock order",
            value=f"{backward} steps back",
            status="fail" if backward else "ok",
            limits="fail above 0",
            remedy="boot with another clocksource" if backward else "",
        ),
    ]


def _late_sleeps(length_s: float) -> Check:
    """The worst delay of a sleep of a millisecond: there are too few sleeps for a percentile."""
    worst_ns, begin = 0, time.perf_counter_ns()
    while (slept_from := time.perf_counter_ns()) - begin < length_s * 1e9:
        time.sleep(0.001)
        worst_ns = max(worst_ns, time.perf_counter_ns() - slept_from - 1_000_000)
    remedy = (
        "the machine is busy, or its CPUs sleep: `cachemark run --set awake=true` keeps them awake"
    )
    return limit_check("latest sleep", worst_ns / 1e3, _LATE, remedy)


def _read_cost() -> Check:
    """The cost of one reading, the interpreter's share included."""
    read = time.perf_counter_ns
    begin = read()
    for _ in range(_READS):
        read()
    cost_ns = (read() - begin) / _READS
    return limit_check("clock read", cost_ns, _READ_COST, "boot with clocksource=tsc")
