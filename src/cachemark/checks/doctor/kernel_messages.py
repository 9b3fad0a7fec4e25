"""Checks of the kernel's log for known problems."""

from __future__ import annotations

from pathlib import Path

from cachemark.checks.doctor.check import NOT_READABLE, Check
from cachemark.host.kernel_log import log
from cachemark.host.kernel_patterns import COMPLAINTS, Complaint, complaints


def journal(root: Path) -> list[Check]:
    """One check for each kind of problem, since boot."""
    lines = log(root)
    found = None if lines is None else complaints(lines)
    return [_check(complaint, found) for complaint in COMPLAINTS]


def _check(complaint: Complaint, found: dict[str, list[str]] | None) -> Check:
    name, limits = f"kernel log: {complaint.name}", f"{complaint.judgement} above 0 since boot"
    if found is None:
        return Check(name=name, value=NOT_READABLE, limits=limits)
    lines = found.get(complaint.name)
    if not lines:
        return Check(name=name, value="none since boot", judgement="ok", limits=limits)
    return Check(
        name=name,
        value=f"{len(lines)} since boot, the last: {lines[-1]}",
        judgement=complaint.judgement,
        limits=limits,
        remedy=complaint.remedy,
    )
