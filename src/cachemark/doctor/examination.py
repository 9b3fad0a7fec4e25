"""The whole examination, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachemark import host
from cachemark.doctor import kernel, machine
from cachemark.doctor.check import Check
from cachemark.doctor.interrupts import interrupts
from cachemark.doctor.journal import journal
from cachemark.doctor.network import network
from cachemark.doctor.reach import reach
from cachemark.doctor.sample import SAMPLE_S, sample
from cachemark.doctor.software import software


def doctor(
    root: Path = Path("/"), sample_s: float = SAMPLE_S, targets: Sequence[str] = ()
) -> list[Check]:
    """Examine this machine; takes a second. `root` is where /proc and /sys are.

    `targets` are servers elsewhere, HOST:PORT. Raises UsageError for what is no address.
    """
    cpus = host.usable_cpus()
    # The second's sample comes last: version checks start programs, which are load of their own.
    before = [
        *machine.cpu(root),
        *machine.usable(cpus, root),
        *machine.frequency(root),
        *kernel.speed(root),
        *kernel.power(root),
        *kernel.numa(root),
        *kernel.isolation(root),
        *machine.quota(root),
        *machine.load(len(cpus), root),
        *kernel.beside(root, len(cpus)),
        *machine.memory(root),
        *machine.clock(root),
        *machine.open_files(),
        *kernel.surroundings(root),
        *network(root),
        *interrupts(cpus, root),
        *journal(root),
        *reach(targets),
    ]
    return [*before, *software(host.facts(root)), *sample(cpus, root, sample_s)]
