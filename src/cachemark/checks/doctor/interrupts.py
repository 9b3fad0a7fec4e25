"""Which CPUs handle device interrupts? If only one side has them, it is measured as slower."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from cachemark.host import cores, placement
from cachemark.host.files import read
from cachemark.host.process import parse_cpus
from cachemark.model.experiment import Placement
from cachemark.model.machine_limits import NOT_READABLE, Check

# Who has fewer than this part of all of the devices' interrupts since boot is not worth a word.
_PART = 0.05
_LIMITS = "warn if busy devices interrupt the CPUs of one side only"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A device's interrupt: its count since boot, and the CPUs that may handle it."""

    number: int
    device: str
    count: int
    cpus: frozenset[int]


def interrupts(cpus: list[int], root: Path) -> list[Check]:
    """Compare the CPUs of the busy interrupts with those that `auto` gives server and workers."""
    busy_sources = busy(sources(root))
    if not busy_sources:
        return [Check(name="device interrupts", value=NOT_READABLE, limits=_LIMITS)]
    where = "; ".join(f"{source.device} → {_named(source.cpus)}" for source in busy_sources)
    if len(cpus) < 2:
        return [Check(name="device interrupts", value=where)]
    sides = [parse_cpus(side) for side in placement(Placement(), cpus, cores(cpus, root)) if side]
    # Each source by itself may go anywhere: it is their sum that must not be one side's alone.
    reached = frozenset[int]().union(*(source.cpus for source in busy_sources))
    burdened = [side for side in sides if reached & side]
    uneven = len(sides) > 1 and len(burdened) == 1
    numbers = " ".join(str(source.number) for source in busy_sources)
    return [
        Check(
            name="device interrupts",
            value=where,
            status="warn" if uneven else "ok",
            limits=_LIMITS,
            remedy=f"for irq in {numbers}; do echo {_named(frozenset(cpus))} > "
            "/proc/irq/$irq/smp_affinity_list; done"
            if uneven
            else "",
        )
    ]


def sources(root: Path) -> list[Source]:
    """Every device interrupt that occurred; empty if the kernel does not list them."""
    lines = read(root / "proc/interrupts").splitlines()
    if not lines:
        return []
    columns = len(lines[0].split())
    return [source for line in lines[1:] if (source := _source(line, columns, root))]


def _source(line: str, columns: int, root: Path) -> Source | None:
    """A line such as ` 36:  0  1800494  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0`."""
    number, _, rest = line.partition(":")
    words = rest.split()
    counts = [int(word) for word in words[:columns] if word.isdecimal()]
    if not number.strip().isdecimal() or not sum(counts):
        return None
    folder = root / "proc/irq" / number.strip()
    allowed = read(folder / "effective_affinity_list") or read(folder / "smp_affinity_list")
    cpus = parse_cpus(allowed) if re.fullmatch(r"[\d,-]+", allowed) else set[int]()
    # Without its setting, where it has come until now.
    came = {cpu for cpu, count in enumerate(counts) if count}
    return Source(
        number=int(number),
        device=words[-1] if len(words) > columns else f"irq {int(number)}",
        count=sum(counts),
        cpus=frozenset(cpus or came),
    )


def busy(all_sources: list[Source]) -> list[Source]:
    """The interrupts with a relevant share of the total, the busiest first."""
    whole = sum(source.count for source in all_sources)
    chosen = [source for source in all_sources if source.count >= _PART * whole]
    return sorted(chosen, key=lambda source: -source.count)


def _named(cpus: frozenset[int]) -> str:
    return ",".join(map(str, sorted(cpus)))
