"""The kernel's counters of disturbances: a table of functions that each read one counter."""

import re
from collections.abc import Callable
from pathlib import Path

from cachemark.host.files import field, read

_CGROUP = "sys/fs/cgroup"
Reader = Callable[[Path], int | None]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _pressure(what: str) -> Reader:
    """Microseconds since boot in which some task waited for the resource."""

    def reader(root: Path) -> int | None:
        line = field(read(root / f"proc/pressure/{what}"), "some", " ")
        match = re.search(r"\btotal=(\d+)", line)
        return int(match[1]) if match else None

    return reader


def _vmstat(name: str) -> Reader:
    def reader(root: Path) -> int | None:
        return _number(field(read(root / "proc/vmstat"), name, " "))

    return reader


def _net(file: str, group: str, names: tuple[str, ...]) -> Reader:
    """The sum of some columns of a group in /proc/net/snmp or netstat.

    A group has two lines: names, then numbers.
    """

    def reader(root: Path) -> int | None:
        lines = read(root / "proc/net" / file).splitlines()
        of_group = [line.split()[1:] for line in lines if line.startswith(f"{group}:")]
        if len(of_group) != 2:
            return None
        values = dict(zip(*of_group, strict=False))
        counts = [_number(values[name]) for name in names if name in values]
        return sum(value for value in counts if value is not None) if counts else None

    return reader


def _packet_drops(root: Path) -> int | None:
    """Packets dropped before protocol processing, on all CPUs: column 2, hexadecimal."""
    rows = [line.split() for line in read(root / "proc/net/softnet_stat").splitlines()]
    return sum(int(row[1], 16) for row in rows if len(row) > 1) if rows else None


def _interrupts(name: str) -> Reader:
    """The count of an architecture-specific interrupt, on all CPUs."""

    def reader(root: Path) -> int | None:
        words = field(read(root / "proc/interrupts"), name, ":").split()
        counts = [int(word) for word in words if word.isdecimal()]
        return sum(counts) if counts else None

    return reader


def _thermal_throttles(root: Path) -> int | None:
    folder = root / "sys/devices/system/cpu"
    texts = [read(path) for path in folder.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    counts = [int(text) for text in texts if text.isdecimal()]
    return sum(counts) if counts else None


def _throttled(root: Path) -> int | None:
    """The number of times that a CPU quota throttled one of our control groups."""
    texts = [field(read(group / "cpu.stat"), "nr_throttled", " ") for group in cgroups(root)]
    counts = [int(text) for text in texts if text.isdecimal()]
    return sum(counts) if counts else None


# By their names in an outcome. No counter ever falls.
COUNTERS: dict[str, Reader] = {
    "cpu_pressure_us": _pressure("cpu"),
    "memory_pressure_us": _pressure("memory"),
    "io_pressure_us": _pressure("io"),
    "throttled": _throttled,
    "swapped_in": _vmstat("pswpin"),
    "major_faults": _vmstat("pgmajfault"),
    "too_hot": _thermal_throttles,
    "oom_kills": _vmstat("oom_kill"),
    "machine_checks": _interrupts("MCE"),
    "segments_sent": _net("snmp", "Tcp", ("OutSegs",)),
    "retransmits": _net("snmp", "Tcp", ("RetransSegs",)),
    "accept_drops": _net("netstat", "TcpExt", ("ListenOverflows", "ListenDrops")),
    "packet_drops": _packet_drops,
}


def counters(root: Path = Path("/")) -> dict[str, int]:
    """All counters that can be read here, by name."""
    values = {name: reader(root) for name, reader in COUNTERS.items()}
    return {name: value for name, value in values.items() if value is not None}


def increases(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """The increase of each counter that both readings have."""
    return {name: after[name] - before[name] for name in COUNTERS if name in before.keys() & after}


def cgroups(root: Path) -> list[Path]:
    """The CPU control groups that this process is in, with all their parents."""
    folders: list[Path] = []
    for line in read(root / "proc/self/cgroup").splitlines():
        number, controllers, own = ([*line.split(":", 2), "", ""])[:3]
        top = root / _CGROUP
        if number != "0" and "cpu" not in controllers.split(","):
            continue
        top = top if number == "0" else top / controllers
        inside = top / own.lstrip("/")
        folders += [inside, *(parent for parent in inside.parents if parent.is_relative_to(top))]
    return folders


def cpu_frequencies_mhz(root: Path = Path("/")) -> list[float]:
    """The current frequency of each CPU; empty on most virtual machines.

    Leaves out CPUs for which the driver reports 0 (some drivers do for sleeping CPUs).
    """
    folder = root / "sys/devices/system/cpu"
    texts = [read(path) for path in folder.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")]
    return [int(text) / 1e3 for text in texts if text.isdecimal() and int(text)]


def run_and_wait_ns(pids: list[int], root: Path = Path("/")) -> tuple[int, int] | None:
    """The times that the processes' threads ran, and were runnable without a CPU, in ns.

    Read from the scheduler's statistics of each thread; None if one cannot be read.
    """
    ran = waited = 0
    for pid in pids:
        threads = list((root / f"proc/{pid}/task").glob("[0-9]*/schedstat"))
        words = [read(path).split() for path in threads]
        if not words or any(len(of) != 3 for of in words):
            return None
        ran += sum(int(of[0]) for of in words)
        waited += sum(int(of[1]) for of in words)
    return ran, waited
