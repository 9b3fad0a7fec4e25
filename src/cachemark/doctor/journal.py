"""Checks of what the kernel itself has complained of: its log, and the counters beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from cachemark.doctor.check import NOT_READABLE, Check
from cachemark.limits import Judgement

# A record of /dev/kmsg is shorter: include/linux/printk.h, PRINTK_MESSAGE_MAX.
_RECORD_BYTES = 8192
# Where the log itself may not be read, what a distribution copied of it at boot or since.
_COPIES = ("var/log/dmesg", "var/log/kern.log")
_LONGEST = 100


class _Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for in the log, and how bad it is to find it."""

    name: str
    pattern: str
    judgement: Judgement
    remedy: str


_COMPLAINTS = (
    _Complaint(
        name="machine checks",
        pattern=r"\[Hardware Error\]|[Mm]achine check (exception|events logged)|EDAC .*\b[CU]E\b",
        judgement="fail",
        remedy="the hardware is failing: measure on another machine, and look at `ras-mc-ctl`",
    ),
    _Complaint(
        name="out of memory",
        pattern=r"[Oo]ut of memory|oom-kill:|invoked oom-killer",
        judgement="warn",
        remedy="give server and clients less memory, or the machine more",
    ),
    _Complaint(
        name="throttled by heat",
        pattern=r"cpu clock throttled|temperature above threshold|thermal.*(critical|throttl)",
        judgement="warn",
        remedy="let it cool down, clear the fans",
    ),
    _Complaint(
        name="stalls",
        pattern=r"soft lockup|hard LOCKUP|rcu.*(self-)?detected stall|blocked for more than \d+ s",
        judgement="warn",
        remedy="a CPU or a disk stood still: look at `dmesg`, and at the hypervisor's host",
    ),
    _Complaint(
        name="clock trouble",
        pattern=r"[Mm]arking clocksource .* as unstable|TSC.*(unstable|not synchronized)",
        judgement="warn",
        remedy="reboot, and look at the clock source afterwards",
    ),
    _Complaint(
        name="lost links and I/O errors",
        pattern=r"[Ll]ink is [Dd]own|I/O error|nf_conntrack: table full|SYN flooding",
        judgement="warn",
        remedy="look at `dmesg` for the device, and mend it",
    ),
)


def journal(root: Path) -> list[Check]:
    """One check for each kind of complaint since boot."""
    lines = log(root)
    return [_check(complaint, lines) for complaint in _COMPLAINTS]


def log(root: Path) -> list[str] | None:
    """The kernel's log, a line for each message; None where it cannot be read."""
    text = _ring(root / "dev/kmsg")
    if text is None:
        text = next((copy for name in _COPIES if (copy := _text(root / name))), None)
    return None if text is None else text.splitlines()


def _ring(path: Path) -> str | None:
    """All records of /dev/kmsg: each read gives one; there is an error where no more wait."""
    try:
        ring = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    records: list[bytes] = []
    try:
        while True:
            try:
                record = os.read(ring, _RECORD_BYTES)
            except BrokenPipeError:  # overwritten before it was read: the next one is there
                continue
            if not record:
                break
            records.append(record)
    except OSError as error:
        # EAGAIN: that was the last. Anything else: it may not be read here.
        if not isinstance(error, BlockingIOError):
            return None
    finally:
        os.close(ring)
    return b"".join(records).decode("utf-8", "replace")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _check(complaint: _Complaint, lines: list[str] | None) -> Check:
    name, limits = f"kernel log: {complaint.name}", f"{complaint.judgement} above 0 since boot"
    if lines is None:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    found = [line for line in lines if re.search(complaint.pattern, line)]
    if not found:
        return Check(name=name, value="none since boot", judgement="ok", limits=limits)
    last = " ".join(found[-1].rpartition(";")[2].split())[:_LONGEST]
    return Check(
        name=name,
        value=f"{len(found)} since boot, the last: {last}",
        judgement=complaint.judgement,
        limits=limits,
        remedy=complaint.remedy,
    )
