"""Lines of the kernel's log that report a problem, and what each means for a measurement.

The doctor searches the log since boot, each trial searches the log of its own window.
"""

import re
from collections.abc import Iterable

import msgspec

from cachemark.model.machine_limits import Status

_MAX_CHARACTERS = 100


class KernelPattern(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern to search for, and the status of the check if it is found.

    `window_pattern` matches further lines that are harmless at boot, but not in a window.
    `biases_comparison`: the problem affects some clients more than others.
    """

    name: str
    pattern: str
    status: Status
    remedy: str
    window_pattern: str = ""
    biases_comparison: bool = False

    def matches(self, line: str, *, within_window: bool) -> bool:
        """Whether a line of the log matches; `within_window`: the line is from a trial's window."""
        patterns = [self.pattern, self.window_pattern if within_window else ""]
        return any(pattern and re.search(pattern, line) for pattern in patterns)


KERNEL_PATTERNS = (
    KernelPattern(
        name="machine checks",
        pattern=r"\[Hardware Error\]|[Mm]achine check (exception|events logged)|EDAC .*\b[CU]E\b",
        status="fail",
        remedy="the hardware is failing: measure on another machine, and look at `ras-mc-ctl`",
        biases_comparison=True,
    ),
    KernelPattern(
        name="out of memory",
        pattern=r"[Oo]ut of memory: Killed|[Oo]ut of memory: Kill process|oom-kill:"
        r"|invoked oom-killer",
        status="warn",
        remedy="give server and clients less memory, or the machine more",
        biases_comparison=True,
    ),
    KernelPattern(
        name="throttled by heat",
        pattern=r"cpu clock throttled|temperature above threshold|thermal.*(critical|throttl)",
        status="warn",
        remedy="let it cool down, clean the fans",
        biases_comparison=True,
    ),
    KernelPattern(
        name="stalls",
        pattern=r"soft lockup|hard LOCKUP|rcu.*(self-)?detected stall|blocked for more than \d+ s",
        status="warn",
        remedy="a CPU or a disk stalled: see `dmesg`, and check the hypervisor's host",
    ),
    KernelPattern(
        name="clock trouble",
        pattern=r"[Mm]arking clocksource .* as unstable|TSC.*(unstable|not synchronized)",
        status="warn",
        remedy="reboot, and check the clock source afterwards",
        window_pattern=r"[Ss]witched to clocksource",
        biases_comparison=True,
    ),
    KernelPattern(
        name="connections refused",
        pattern=r"SYN flooding|nf_conntrack: table full|TCP: out of memory|TCP: too many orphaned"
        r"|neighbor table overflow",
        status="warn",
        remedy="raise net.core.somaxconn, net.ipv4.tcp_max_syn_backlog or nf_conntrack_max",
    ),
    KernelPattern(
        name="lost links and I/O errors",
        pattern=r"[Ll]ink is [Dd]own|I/O error",
        status="warn",
        remedy="find the device in `dmesg`, and repair it",
    ),
)


def matching_lines(lines: Iterable[str], *, within_window: bool = False) -> dict[str, list[str]]:
    """The matching lines of a log, by the name of the pattern, without prefix and time."""
    matches: dict[str, list[str]] = {}
    for line in lines:
        for kernel_pattern in KERNEL_PATTERNS:
            if kernel_pattern.matches(line, within_window=within_window):
                text = " ".join(line.rpartition(";")[2].split())[:_MAX_CHARACTERS]
                matches.setdefault(kernel_pattern.name, []).append(text)
    return matches
