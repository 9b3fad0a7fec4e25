"""The environment: facts about this machine, CPU placement, noise sampled during a trial."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import msgspec

from cachemark import __version__
from cachemark.errors import UsageError
from cachemark.experiment import Placement
from cachemark.outcome import HostNoise
from cachemark.process import parse_cpus

_TOOLS: dict[str, list[str]] = {
    "memcached": ["memcached", "-V"],
    "rustc": ["rustc", "--version"],
    "pypy3": ["pypy3", "--version"],
    "java": ["java", "-version"],
    "ruby": ["ruby", "--version"],
    "php": ["php", "--version"],
    "go": ["go", "version"],
    "node": ["node", "--version"],
}
_TOOL_TIMEOUT_S = 5.0


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, as it was when a run was made. What cannot be read here is empty."""

    name: str
    cpu_model: str
    cpus: int
    usable_cpus: list[int]
    hypervisor: bool
    kernel: str
    system: str
    memory_bytes: int
    governor: str
    clocksource: str
    load_1min: float
    python: str
    cachemark: str
    tools: dict[str, str]


def facts(root: Path = Path("/")) -> HostFacts:
    """Look at this machine; `root` is where /proc and /sys are."""
    cpuinfo = read(root / "proc/cpuinfo")
    cpu_root = root / "sys/devices/system"
    return HostFacts(
        name=platform.node(),
        cpu_model=field(cpuinfo, "model name", ":"),
        cpus=os.cpu_count() or 1,
        usable_cpus=usable_cpus(),
        hypervisor=" hypervisor" in field(cpuinfo, "flags", ":"),
        kernel=platform.release(),
        system=field(read(root / "etc/os-release"), "PRETTY_NAME", "=").strip('"'),
        memory_bytes=_kib(field(read(root / "proc/meminfo"), "MemTotal", ":")),
        governor=read(cpu_root / "cpu/cpu0/cpufreq/scaling_governor").strip(),
        clocksource=read(cpu_root / "clocksource/clocksource0/current_clocksource").strip(),
        load_1min=os.getloadavg()[0],
        python=platform.python_version(),
        cachemark=__version__,
        tools={name: version for name, command in _TOOLS.items() if (version := _version(command))},
    )


def read(path: Path) -> str:
    """A small file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def field(text: str, name: str, separator: str) -> str:
    """The value on the first line that begins with a name; empty where there is none."""
    for line in text.splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    return ""


def _kib(text: str) -> int:
    words = text.split()
    return int(words[0]) * 1024 if words and words[0].isdecimal() else 0


def _version(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (ended.stdout or ended.stderr).strip().splitlines()
    return lines[0].strip() if lines else ""


def usable_cpus() -> list[int]:
    """The CPUs that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def placement(wanted: Placement, usable: list[int]) -> tuple[str, str]:
    """The CPU sets of server and worker; empty: any. Pure. Raises UsageError.

    `auto` gives each half of the machine, so that neither takes the other's CPU; with one CPU
    there is nothing to share out.
    """
    half = len(usable) // 2
    halves = (_set(usable[:half]), _set(usable[half:])) if half else ("", "")
    sides = (("server", wanted.server, halves[0]), ("worker", wanted.worker, halves[1]))
    return tuple(_placed(*side, usable) for side in sides)  # pyright: ignore[reportReturnType]


def _placed(side: str, wanted: str, automatic: str, usable: list[int]) -> str:
    if wanted == "auto":
        return automatic
    if wanted == "none":
        return ""
    missing = parse_cpus(wanted) - set(usable)
    if missing:
        raise UsageError(
            f"placement of the {side}: CPU {min(missing)} cannot be used here",
            f"usable CPUs: {_set(usable)}",
        )
    return wanted


def _set(cpus: list[int]) -> str:
    return ",".join(str(cpu) for cpu in cpus)


class NoiseProbe:
    """Reads /proc at both ends of a window: what others took of the machine meanwhile."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._own: list[int] = []
        self._begin: list[int] = []
        self._own_begin = 0

    def start(self, own_pids: list[int]) -> None:
        """The window begins; `own_pids` are the processes of the trial."""
        self._own = own_pids
        self._own_begin = self._own_ticks()
        self._begin = self._ticks()

    def stop(self) -> HostNoise:
        """The window has ended."""
        ticks = [end - begin for begin, end in zip(self._begin, self._ticks(), strict=False)]
        own = self._own_ticks() - self._own_begin
        total = sum(ticks[:8])
        if len(ticks) < 8 or total <= 0:
            return HostNoise(load_1min=os.getloadavg()[0])
        idle, steal = ticks[3] + ticks[4], ticks[7]
        foreign = max(0, total - idle - steal - own)
        return HostNoise(
            steal_percent=round(100 * steal / total, 2),
            foreign_cpu_percent=round(100 * foreign / total, 2),
            load_1min=os.getloadavg()[0],
        )

    def _ticks(self) -> list[int]:
        line = read(self._root / "proc/stat").partition("\n")[0]
        return [int(word) for word in line.split()[1:]]

    def _own_ticks(self) -> int:
        ticks = 0
        for pid in [*self._own, os.getpid()]:
            # The name in brackets may hold spaces; utime and stime are fields 14 and 15.
            after = read(self._root / f"proc/{pid}/stat").rpartition(")")[2].split()
            if len(after) > 12:
                ticks += int(after[11]) + int(after[12])
        return ticks
