"""Which CPUs are hardware threads of the same core."""

from __future__ import annotations

from pathlib import Path

from cachemark.host.files import read
from cachemark.host.process import parse_cpus
from cachemark.model.errors import UsageError

_CPUS = "sys/devices/system/cpu"


def cores(cpus: list[int], root: Path = Path("/")) -> list[list[int]]:
    """The CPUs grouped by core, in order. A CPU of unknown core is a group of its own."""
    groups: list[list[int]] = []
    placed: set[int] = set()
    for cpu in cpus:
        if cpu not in placed:
            group = [cpu, *(other for other in cpus if other in _siblings(cpu, root) - {cpu})]
            groups.append([other for other in group if other not in placed])
            placed.update(group)
    return groups


def _siblings(cpu: int, root: Path) -> set[int]:
    text = read(root / _CPUS / f"cpu{cpu}/topology/thread_siblings_list")
    try:
        return parse_cpus(text)
    except UsageError:
        return {cpu}
