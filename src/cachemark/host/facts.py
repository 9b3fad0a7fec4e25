"""Facts about this machine and the software on it, stored with every run."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from cachemark import __version__
from cachemark.host.files import field, kib_field, read
from cachemark.host.placement import cores, usable_cpus
from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError
from cachemark.model.run_header import HostFacts

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


def facts(root: Path = Path("/")) -> HostFacts:
    """Collect the facts. `root` is the folder that has /proc, /sys and /etc."""
    cpuinfo, meminfo = read(root / "proc/cpuinfo"), read(root / "proc/meminfo")
    cpus = usable_cpus()
    return HostFacts(
        name=platform.node(),
        cpu_model=field(cpuinfo, "model name", ":"),
        cpus=os.cpu_count() or 1,
        usable_cpus=cpus,
        hypervisor=hypervisor(root),
        kernel=platform.release(),
        system=field(read(root / "etc/os-release"), "PRETTY_NAME", "=").strip('"'),
        memory_bytes=kib_field(meminfo, "MemTotal") or 0,
        governor=governor(root),
        clocksource=clocksource(root),
        load_1min=os.getloadavg()[0],
        python=platform.python_version(),
        cachemark=__version__,
        tools={name: version for name, command in _TOOLS.items() if (version := _version(command))},
        cores=cores(cpus, root),
        turbo=turbo(root),
        mitigations=mitigations(root),
        swap_used_bytes=swap_used_bytes(root) or 0,
        engine=engine_version(),
    )


def hypervisor(root: Path) -> bool:
    """Whether this is a virtual machine, by the CPU's flags and the kernel."""
    flags = field(read(root / "proc/cpuinfo"), "flags", ":").split()
    return "hypervisor" in flags or bool(read(root / "sys/hypervisor/type"))


def governor(root: Path) -> str:
    """The frequency governors of the CPUs, such as `performance`; empty if there are none."""
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return ",".join(sorted({read(path) for path in paths} - {""}))


def turbo(root: Path) -> str:
    """`on`, `off`, or empty if it cannot be read."""
    folder = root / "sys/devices/system/cpu"
    intel = {"0": "on", "1": "off"}.get(read(folder / "intel_pstate/no_turbo"), "")
    return intel or {"0": "off", "1": "on"}.get(read(folder / "cpufreq/boost"), "")


def clocksource(root: Path) -> str:
    """The kernel's clock source, such as `tsc`."""
    return read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")


def mitigations(root: Path) -> dict[str, str]:
    """The kernel's mitigation of each vulnerability that affects the CPU."""
    folder = root / "sys/devices/system/cpu/vulnerabilities"
    texts = {path.name: read(path) for path in sorted(folder.glob("*"))}
    return {name: text for name, text in texts.items() if text not in ("", "Not affected")}


def swap_used_bytes(root: Path) -> int | None:
    """Swap in use; None if it cannot be read."""
    meminfo = read(root / "proc/meminfo")
    total, free = kib_field(meminfo, "SwapTotal"), kib_field(meminfo, "SwapFree")
    return None if total is None or free is None else total - free


def engine_version() -> str:
    """The version that cachemark-engine reports; empty if it is not installed."""
    try:
        return _version([binary_path(), "--version"])
    except UsageError:
        return ""


def _version(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TOOL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (ended.stdout or ended.stderr).strip().splitlines()
    return lines[0].strip() if lines and ended.returncode == 0 else ""
