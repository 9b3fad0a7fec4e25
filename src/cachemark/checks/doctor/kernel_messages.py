"""Checks of the kernel's log for known problems."""

from __future__ import annotations

from pathlib import Path

from cachemark.host.kernel_log import read_kernel_log
from cachemark.model.kernel_patterns import KERNEL_PATTERNS, KernelPattern, matching_lines
from cachemark.model.machine_limits import NOT_READABLE, Check


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
