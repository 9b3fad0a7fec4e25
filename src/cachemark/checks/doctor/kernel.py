"""Checks of the kernel: idle states, NUMA, interrupts, tracing, heat, messages in its log."""

import os
import re
from pathlib import Path

import msgspec

from cachemark.host import counters
from cachemark.host.files import field, read
from cachemark.host.kernel_log import read_kernel_log
from cachemark.host.placement import cores, placement
from cachemark.host.process import parse_cpus
from cachemark.model.experiment import Placement
from cachemark.model.kernel_patterns import KernelPattern, kernel_patterns, matching_lines
from cachemark.model.machine_limits import (
    FREQUENCY,
    NOT_READABLE,
    Check,
    Limits,
    info_check,
    judged_check,
    limit_check,
    word_check,
)

# A device with less than this part of all interrupts since boot is not reported.
_PART = 0.05
_LIMITS = "warn if busy devices interrupt the CPUs of one side only"
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
            counters.counters(root).get("too_hot"),
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
    """With more than one memory node, placement decides the cost of a cache miss."""
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    limits = "warn above 1 without numactl"
    remedy = "numactl --cpunodebind=0 --membind=0 cachemark run …"
    checks = [
        judged_check("memory nodes", str(nodes), limits, remedy, "warn" if nodes > 1 else "ok")
        if nodes
        else Check(name="memory nodes", value=NOT_READABLE, limits=limits)
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
    names = {read(path) for path in (root / "proc").glob("[0-9]*/comm")}
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
    value = "runs" if there else "does not run"
    return judged_check(name, value, "warn if it runs", remedy, "warn" if there else "ok")


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
    return [_check(pattern, matches) for pattern in kernel_patterns()]


def _check(pattern: KernelPattern, lines_by_pattern: dict[str, list[str]] | None) -> Check:
    name, limits = f"kernel log: {pattern.name}", f"{pattern.status} above 0 since boot"
    if lines_by_pattern is None:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    lines = lines_by_pattern.get(pattern.name)
    if not lines:
        return Check(name=name, value="none since boot", status="ok", limits=limits)
    last = f"{len(lines)} since boot, the last: {lines[-1]}"
    return judged_check(name, last, limits, pattern.remedy, pattern.status)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A device's interrupt: its count since boot, and the CPUs that may handle it."""

    number: int
    device: str
    count: int
    cpus: frozenset[int]


def interrupts(cpus: list[int], root: Path) -> list[Check]:
    """Compare the CPUs of the busy interrupts with those that `auto` gives server and workers."""
    busy_sources = busy(sources(root))
    if not busy_sources:
        return [Check(name="device interrupts", value=NOT_READABLE, limits=_LIMITS)]
    where = "; ".join(f"{source.device} → {_named(source.cpus)}" for source in busy_sources)
    if len(cpus) < 2:
        return [Check(name="device interrupts", value=where)]
    sides = [parse_cpus(side) for side in placement(Placement(), cpus, cores(cpus, root)) if side]
    # Each source by itself may go anywhere: it is their sum that must not be one side's alone.
    reached = frozenset[int]().union(*(source.cpus for source in busy_sources))
    burdened = [side for side in sides if reached & side]
    uneven = len(sides) > 1 and len(burdened) == 1
    numbers = " ".join(str(source.number) for source in busy_sources)
    remedy = (
        f"for irq in {numbers}; do echo {_named(frozenset(cpus))} > "
        "/proc/irq/$irq/smp_affinity_list; done"
    )
    status = "warn" if uneven else "ok"
    return [judged_check("device interrupts", where, _LIMITS, remedy, status)]


def sources(root: Path) -> list[Source]:
    """Every device interrupt that occurred; empty if the kernel does not list them."""
    lines = read(root / "proc/interrupts").splitlines()
    if not lines:
        return []
    columns = len(lines[0].split())
    return [source for line in lines[1:] if (source := _source(line, columns, root))]


def _source(line: str, columns: int, root: Path) -> Source | None:
    """A line such as ` 36:  0  1800494  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0`."""
    number, _, rest = line.partition(":")
    words = rest.split()
    counts = [int(word) for word in words[:columns] if word.isdecimal()]
    if not number.strip().isdecimal() or not sum(counts):
        return None
    folder = root / "proc/irq" / number.strip()
    allowed = read(folder / "effective_affinity_list") or read(folder / "smp_affinity_list")
    cpus = parse_cpus(allowed) if re.fullmatch(r"[\d,-]+", allowed) else set[int]()
    # Without its setting, where it has come until now.
    came = {cpu for cpu, count in enumerate(counts) if count}
    return Source(
        number=int(number),
        device=words[-1] if len(words) > columns else f"irq {int(number)}",
        count=sum(counts),
        cpus=frozenset(cpus or came),
    )


def busy(all_sources: list[Source]) -> list[Source]:
    """The interrupts with a relevant share of the total, the busiest first."""
    whole = sum(source.count for source in all_sources)
    chosen = [source for source in all_sources if source.count >= _PART * whole]
    return sorted(chosen, key=lambda source: -source.count)


def _named(cpus: frozenset[int]) -> str:
    return ",".join(map(str, sorted(cpus)))
