"""Checks of the kernel: idle states, NUMA, interrupts, tracing, heat."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cachemark.host import counters
from cachemark.host.files import field, read
from cachemark.host.kernel_log import read_kernel_log
from cachemark.model.kernel_patterns import KERNEL_PATTERNS, KernelPattern, matching_lines
from cachemark.model.machine_limits import (
    FREQUENCY,
    NOT_READABLE,
    Check,
    Limits,
    info_check,
    limit_check,
    word_check,
)

_CPUS = "sys/devices/system/cpu"
# A core that wakes from a state deeper than this delays the work that waits for it.
_EXIT = Limits(unit="µs to wake", warn=10)
_HOTTEST = Limits(unit="°C", warn=80, fail=95)
_ONCE = Limits(unit="times since boot", warn=0)
_RUNNABLE = Limits(unit="more than CPUs", warn=0)
_ISOLATION = ("isolcpus", "nohz_full", "rcu_nocbs")


def speed(root: Path) -> list[Check]:
    """Do the CPUs run at the same frequency, and how long do they take to wake?"""
    now = counters.cpu_frequencies_mhz(root)
    spread = 100 * (max(now) / min(now) - 1) if now else None
    pause = "set one frequency: cpupower frequency-set -f, or the governor `performance`"
    return [
        info_check("cpu speed", f"{min(now):.0f} to {max(now):.0f} MHz" if now else ""),
        limit_check("cpu speed spread", spread, FREQUENCY, pause),
        limit_check(
            "deepest idle state",
            _deepest_exit_us(root),
            _EXIT,
            "hold /dev/cpu_dma_latency open at 0, or boot with processor.max_cstate=1",
        ),
        limit_check("hottest sensor", _hottest(root), _HOTTEST, "let it cool down, clean the fans"),
        limit_check(
            "throttled by heat",
            _count(counters.counters(root), "too_hot"),
            _ONCE,
            "let it cool down, clean the fans",
        ),
    ]


def _deepest_exit_us(root: Path) -> float | None:
    """The longest exit latency of the enabled idle states."""
    latencies_us: list[int] = []
    for state in (root / _CPUS / "cpu0/cpuidle").glob("state[0-9]*"):
        latency = read(state / "latency")
        if latency.isdecimal() and read(state / "disable") != "1":
            latencies_us.append(int(latency))
    return float(max(latencies_us)) if latencies_us else None


def _hottest(root: Path) -> float | None:
    texts = [read(path) for path in (root / "sys/class/thermal").glob("thermal_zone*/temp")]
    degrees = [int(text) / 1000 for text in texts if text.lstrip("-").isdecimal()]
    return max(degrees, default=None)


def _count(counters: dict[str, int], name: str) -> float | None:
    return float(counters[name]) if name in counters else None


def isolation(root: Path) -> list[Check]:
    """Isolated CPUs, preemption, ticks, and the kernel's command line."""
    words = read(root / "proc/cmdline").split()
    told_at_boot = [word for word in words if word.partition("=")[0] in _ISOLATION]
    version = read(root / "proc/version")
    preempt = next((w for w in ("PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT") if w in version), "")
    return [
        info_check("isolated cpus", " ".join(told_at_boot) or "none"),
        info_check("preemption", preempt or "voluntary or none"),
        info_check("kernel command line", " ".join(words)),
    ]


def numa(root: Path) -> list[Check]:
    """More than one memory node: then placement decides what a cache miss costs."""
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    limits = "warn above 1 without numactl"
    remedy = "numactl --cpunodebind=0 --membind=0 cachemark run …"
    checks = [
        Check(
            name="memory nodes",
            value=str(nodes) if nodes else NOT_READABLE,
            status="warn" if nodes > 1 else "ok" if nodes else "info",
            limits=limits,
            remedy=remedy if nodes > 1 else "",
        )
    ]
    balancing = read(root / "proc/sys/kernel/numa_balancing")
    if nodes > 1:
        off = "sysctl kernel.numa_balancing=0"
        checks.append(word_check("memory moved between nodes", balancing, ("0",), off))
    return checks


def background_activity(root: Path, cpus: int) -> list[Check]:
    """Other activity: runnable threads, interrupts that move, tracers, other servers."""
    running = field(read(root / "proc/stat"), "procs_running", " ")
    # This process is one of them.
    more = int(running) - 1 - cpus if running.isdecimal() else None
    names = _processes(root)
    return [
        limit_check(
            "runnable threads",
            None if more is None else float(max(0, more)),
            _RUNNABLE,
            "wait until the machine is idle, or stop the other programs",
        ),
        _absent("irqbalance", "irqbalance" in names, "systemctl stop irqbalance"),
        _absent("auditd", "auditd" in names, "systemctl stop auditd: it inspects system calls"),
        _absent("docker-proxy", "docker-proxy" in names, "run the server with --network=host"),
        _tracer(root),
    ]


def _absent(name: str, there: bool, remedy: str) -> Check:
    return Check(
        name=name,
        value="runs" if there else "does not run",
        status="warn" if there else "ok",
        limits="warn if it runs",
        remedy=remedy if there else "",
    )


def _processes(root: Path) -> set[str]:
    return {read(path) for path in (root / "proc").glob("[0-9]*/comm")}


def _tracer(root: Path) -> Check:
    """A tracer adds time to every event that it records."""
    tracer = read(root / "sys/kernel/tracing/current_tracer")
    return word_check("tracer", tracer, ("nop",), "echo nop > /sys/kernel/tracing/current_tracer")


def power(root: Path) -> list[Check]:
    """On battery, CPUs are slower, and their speed varies."""
    supplies = [read(path) for path in (root / "sys/class/power_supply").glob("*/online")]
    known = [text for text in supplies if text in ("0", "1")]
    value = "" if not known else "mains" if "1" in known else "battery"
    return (
        [word_check("power", value, ("mains",), "connect the machine to mains power")]
        if known
        else []
    )


def environment(root: Path) -> list[Check]:
    """Findings about settings that change the memory layout between runs."""
    size = sum(len(name) + len(value) + 2 for name, value in os.environ.items())
    perf = read(root / "proc/sys/kernel/perf_event_max_sample_rate")
    overcommit = read(root / "proc/sys/vm/overcommit_memory")
    rate = re.fullmatch(r"\d+", perf)
    return [
        info_check("environment", f"{size} bytes in {len(os.environ)} variables"),
        # Its length moves the stack as the environment's does: Mytkowicz et al., ASPLOS 2009.
        info_check("working folder", f"{len(str(Path.cwd()))} characters"),
        info_check("perf events at most", f"{perf}/s" if rate else ""),
        info_check("memory overcommit", overcommit),
    ]


def kernel_message_checks(root: Path) -> list[Check]:
    """One check for each kind of problem, since boot."""
    lines = read_kernel_log(root)
    matches = None if lines is None else matching_lines(lines)
    return [_check(pattern, matches) for pattern in KERNEL_PATTERNS]


def _check(pattern: KernelPattern, lines_by_pattern: dict[str, list[str]] | None) -> Check:
    name, limits = f"kernel log: {pattern.name}", f"{pattern.status} above 0 since boot"
    if lines_by_pattern is None:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    lines = lines_by_pattern.get(pattern.name)
    if not lines:
        return Check(name=name, value="none since boot", status="ok", limits=limits)
    return Check(
        name=name,
        value=f"{len(lines)} since boot, the last: {lines[-1]}",
        status=pattern.status,
        limits=limits,
        remedy=pattern.remedy,
    )
