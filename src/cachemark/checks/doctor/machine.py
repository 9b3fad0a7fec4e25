"""Checks of the machine's set-up, as /proc and /sys show it."""

import math
import platform
import re
import resource
from pathlib import Path

from cachemark.host.counters import cgroups
from cachemark.host.facts import (
    clocksource,
    governor,
    hypervisor,
    mitigations,
    swap_used_bytes,
    turbo,
)
from cachemark.host.files import field, kib_field, read
from cachemark.host.placement import cores, placement
from cachemark.host.process import parse_cpus
from cachemark.model.experiment import Placement
from cachemark.model.machine_limits import (
    NOT_READABLE,
    Check,
    Limits,
    info_check,
    judged_check,
    least_check,
    limit_check,
    word_check,
)

_CLOCKSOURCES = ("tsc", "kvm-clock", "arch_sys_counter")
_MIN_OPEN_FILES = 4096
_PSI = Limits(unit="% of 10 s", warn=1, fail=5)


def cpu(root: Path) -> list[Check]:
    """Model, microcode, sockets, cores and their threads, hypervisor."""
    cpuinfo = read(root / "proc/cpuinfo")
    return [
        info_check("cpu model", field(cpuinfo, "model name", ":")),
        info_check("cpu microcode", field(cpuinfo, "microcode", ":")),
        info_check("cpu topology", _topology(cpuinfo)),
        info_check("hypervisor", "virtual machine" if hypervisor(root) else "none seen"),
        info_check("kernel", platform.release()),
        info_check("mitigations", ", ".join(mitigations(root))),
    ]


def _topology(cpuinfo: str) -> str:
    """Empty if the kernel lists no cores, as on most ARM machines."""
    threads = [block for block in cpuinfo.split("\n\n") if field(block, "processor", ":")]
    known = {(field(block, "physical id", ":"), field(block, "core id", ":")) for block in threads}
    if not threads or ("", "") in known:
        return ""
    sockets = {socket for socket, _ in known}
    return f"{len(threads)} threads, {len(known)} cores, sockets: {len(sockets)}"


def usable(cpus: list[int], root: Path) -> list[Check]:
    """Can server and workers each have CPUs, and cores, of their own?"""
    limits = "warn below 2"
    if len(cpus) < 2:
        remedy = "use a machine with at least 2 CPUs: here, server and client share one"
        return [Check(name="usable cpus", value="1", status="warn", limits=limits, remedy=remedy)]
    groups = cores(cpus, root)
    server, worker = placement(Placement(), cpus, groups)
    shared = any(
        parse_cpus(server) & set(group) and parse_cpus(worker) & set(group) for group in groups
    )
    remedy = "give the machine a second core: server and client run on hyper-threads of one core"
    return [
        Check(name="usable cpus", value=str(len(cpus)), status="ok", limits=limits),
        judged_check(
            "placement auto",
            f"server {server}; worker {worker}",
            "fail if both sides run on hyper-threads of one core",
            remedy,
            "fail" if shared else "ok",
        ),
    ]


def frequency(root: Path) -> list[Check]:
    """Does the CPU keep its frequency?"""
    return [
        word_check(
            "cpu governor",
            governor(root),
            ("performance",),
            "cpupower frequency-set -g performance",
        ),
        word_check("turbo", turbo(root), ("off",), _turbo_remedy(root)),
    ]


def _turbo_remedy(root: Path) -> str:
    folder = "/sys/devices/system/cpu"
    if (root / "sys/devices/system/cpu/intel_pstate/no_turbo").exists():
        return f"echo 1 > {folder}/intel_pstate/no_turbo"
    return f"echo 0 > {folder}/cpufreq/boost"


def quota(root: Path) -> list[Check]:
    """A control group's CPU limit can stop its processes in the middle of a window."""
    limits = "warn if there is one, fail if it has throttled processes"
    quotas = [text for folder in cgroups(root) if (text := _quota(folder))]
    if not quotas:
        return [Check(name="cpu quota", value=NOT_READABLE, limits=limits)]
    limited = [text for text in quotas if not text.startswith("none")]
    if not limited:
        return [Check(name="cpu quota", value="none", status="ok", limits=limits)]
    throttled = any(not text.endswith("throttled 0 times") for text in limited)
    remedy = "measure outside of the container, or without a CPU limit"
    status = "fail" if throttled else "warn"
    return [judged_check("cpu quota", "; ".join(limited), limits, remedy, status)]


def _quota(folder: Path) -> str:
    """A group's limit and how often it throttled; `none`, or empty if there is no such file."""
    words = read(folder / "cpu.max").split()
    if not words:
        words = [read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    if len(words) != 2 or not words[1].isdecimal():
        return ""
    if not words[0].isdecimal():
        return "none"
    throttled = field(read(folder / "cpu.stat"), "nr_throttled", " ") or "0"
    return f"{int(words[0]) / int(words[1]):g} CPUs, throttled {throttled} times"


def load(cpus: int, root: Path) -> list[Check]:
    """Is anything else running?"""
    words = read(root / "proc/loadavg").split()
    per_cpu = float(words[0]) / cpus if words else None
    remedy = "wait until the machine is idle, or stop the other programs"
    checks = [limit_check("load", per_cpu, Limits(unit="per CPU", warn=0.5), remedy)]
    for what in ("cpu", "memory", "io"):
        checks.append(limit_check(f"{what} pressure", _some_avg10(root, what), _PSI, remedy))
    return checks


def _some_avg10(root: Path, what: str) -> float | None:
    """The share of the last 10 s in which a process waited, in percent."""
    line = field(read(root / f"proc/pressure/{what}"), "some", " ")
    match = re.search(r"\bavg10=([0-9.]+)", line)
    return float(match[1]) if match else None


def memory(root: Path) -> list[Check]:
    """Is there enough memory, and is swap unused?"""
    meminfo = read(root / "proc/meminfo")
    free = kib_field(meminfo, "MemAvailable")
    swap = swap_used_bytes(root)
    huge = read(root / "sys/kernel/mm/transparent_hugepage/enabled")
    return [
        info_check("memory available", "" if free is None else f"{free / 2**30:.1f} GiB"),
        limit_check(
            "swap in use",
            None if swap is None else swap / 2**20,
            Limits(unit="MiB", warn=0),
            "swapoff -a, when there is enough memory",
        ),
        info_check("huge pages", huge.partition("[")[2].partition("]")[0]),
        info_check("address randomisation", read(root / "proc/sys/kernel/randomize_va_space")),
    ]


def clock(root: Path) -> list[Check]:
    """Which clock source does the kernel use?"""
    remedy = "boot with a clock that needs no system call: clocksource=tsc"
    return [word_check("clocksource", clocksource(root), _CLOCKSOURCES, remedy)]


def open_files() -> list[Check]:
    """How many connections can a process open?"""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = math.inf if soft == resource.RLIM_INFINITY else soft
    return [least_check("open files", count, _MIN_OPEN_FILES, "ulimit -n 65536")]
