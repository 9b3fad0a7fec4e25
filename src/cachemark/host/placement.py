"""Chooses the CPUs of the server and of the workers."""

import os
from itertools import chain
from pathlib import Path

from cachemark.host.files import read
from cachemark.host.process import parse_cpus
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Placement

_CPUS = "sys/devices/system/cpu"
# Server and workers need a core each.
_FEW_CORES = 2


def usable_cpus() -> list[int]:
    """The CPUs that this process may run on; all of them if the system cannot say (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def run_on(cpus: list[int] | set[int]) -> None:
    """Restrict this thread to these CPUs, if the system can do that. Raises OSError."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


def placement(
    wanted: Placement, usable: list[int], cores: list[list[int]] | None = None
) -> tuple[str, str]:
    """The CPU sets of server and worker, as text; empty: any CPU. Pure. Raises UsageError.

    `auto` is half of the usable CPUs, in whole cores if `cores` lists more than one. If the other
    side has an explicit set, `auto` is the rest. With a single CPU it is empty.
    """
    server = _explicit("server", wanted.server, usable)
    worker = _explicit("worker", wanted.worker, usable)
    halves = _halves(usable, cores or [])
    return (
        _side(wanted.server, server, worker, usable, halves[0]),
        _side(wanted.worker, worker, server, usable, halves[1]),
    )


def halves(usable: list[int]) -> tuple[str, str]:
    """This machine's default CPU sets of server and worker."""
    return placement(Placement(), usable, cores(usable))


def apart(cpus: str) -> tuple[str, str]:
    """The CPUs of a measuring client, and of the load generators beside it. Pure.

    They share a single CPU. Empty (any CPU) stays empty.
    """
    if not cpus:
        return "", ""
    first, *others = sorted(parse_cpus(cpus))
    return _text([first]), _text(others or [first])


def beside(cores: list[list[int]]) -> tuple[str, str]:
    """The CPUs for the measured processes, and for the server of pages beside them. Pure.

    The pages get the last core. With one or two cores, both are empty: any CPU.
    """
    if len(cores) <= _FEW_CORES:
        return "", ""
    *measured, last = cores
    return _text(list(chain(*measured))), _text(last)


def _explicit(side: str, wanted: str, usable: list[int]) -> set[int]:
    if wanted in ("auto", "none"):
        return set()
    cpus = parse_cpus(wanted)
    missing = cpus - set(usable)
    if missing:
        raise UsageError(
            f"placement of the {side}: CPU {min(missing)} cannot be used here",
            f"usable CPUs: {_text(usable)}",
        )
    return cpus


def _halves(usable: list[int], cores: list[list[int]]) -> tuple[list[int], list[int]]:
    # With a single core, split its threads.
    units = cores if len(cores) > 1 else [[cpu] for cpu in usable]
    half = len(units) // 2
    if not half:
        return [], []
    return list(chain(*units[:half])), list(chain(*units[half:]))


def _side(wanted: str, own: set[int], other: set[int], usable: list[int], half: list[int]) -> str:
    if wanted == "auto":
        return _text([cpu for cpu in usable if cpu not in other] if other else half)
    return _text(sorted(own))


def _text(cpus: list[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))


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
