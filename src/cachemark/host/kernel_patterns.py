"""What the kernel may complain of in its log, and what that means for figures: one table.

The doctor looks for it since boot, each trial in its own window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from cachemark.host.limits import Judgement

_LONGEST = 100


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for in the log, and how bad it is to find it.

    `also_within` is harmless at boot, but not in a window. `bends`: it falls on some clients more
    than on others.
    """

    name: str
    pattern: str
    judgement: Judgement
    remedy: str
    also_within: str = ""
    bends: bool = False

    def matches(self, line: str, *, within: bool) -> bool:
        """Whether a line of the log is such a complaint; `within`: it is of a window."""
        patterns = [self.pattern, self.also_within if within else ""]
        return any(pattern and re.search(pattern, line) for pattern in patterns)


COMPLAINTS = (
    Complaint(
        name="machine checks",
        pattern=r"\[Hardware Error\]|[Mm]achine check (exception|events logged)|EDAC .*\b[CU]E\b",
        judgement="fail",
        remedy="the hardware is failing: measure on another machine, and look at `ras-mc-ctl`",
        bends=True,
    ),
    Complaint(
        name="out of memory",
        pattern=r"[Oo]ut of memory: Killed|[Oo]ut of memory: Kill process|oom-kill:"
        r"|invoked oom-killer",
        judgement="warn",
        remedy="give server and clients less memory, or the machine more",
        bends=True,
    ),
    Complaint(
        name="throttled by heat",
        pattern=r"cpu clock throttled|temperature above threshold|thermal.*(critical|throttl)",
        judgement="warn",
        remedy="let it cool down, clean the fans",
        bends=True,
    ),
    Complaint(
        name="stalls",
        pattern=r"soft lockup|hard LOCKUP|rcu.*(self-)?detected stall|blocked for more than \d+ s",
        judgement="warn",
        remedy="a CPU or a disk stalled: see `dmesg`, and check the hypervisor's host",
    ),
    Complaint(
        name="clock trouble",
        pattern=r"[Mm]arking clocksource .* as unstable|TSC.*(unstable|not synchronized)",
        judgement="warn",
        remedy="reboot, and check the clock source afterwards",
        also_within=r"[Ss]witched to clocksource",
        bends=True,
    ),
    Complaint(
        name="connections refused",
        pattern=r"SYN flooding|nf_conntrack: table full|TCP: out of memory|TCP: too many orphaned"
        r"|neighbor table overflow",
        judgement="warn",
        remedy="raise net.core.somaxconn, net.ipv4.tcp_max_syn_backlog or nf_conntrack_max",
    ),
    Complaint(
        name="lost links and I/O errors",
        pattern=r"[Ll]ink is [Dd]own|I/O error",
        judgement="warn",
        remedy="find the device in `dmesg`, and repair it",
    ),
)


def complaints(lines: Iterable[str], *, within: bool = False) -> dict[str, list[str]]:
    """The lines of a log that are complaints, by the complaint's name, without their heads."""
    found: dict[str, list[str]] = {}
    for line in lines:
        for complaint in COMPLAINTS:
            if complaint.matches(line, within=within):
                text = " ".join(line.rpartition(";")[2].split())[:_LONGEST]
                found.setdefault(complaint.name, []).append(text)
    return found
