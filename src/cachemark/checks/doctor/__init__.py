"""Is this machine suitable for measurements? Each check has a value, a result and stated limits."""

from collections.abc import Sequence
from pathlib import Path

from cachemark.checks.doctor import kernel, machine, network, software
from cachemark.checks.doctor.jitter import SAMPLE_S, jitter_checks
from cachemark.checks.doctor.kernel import interrupts, kernel_message_checks
from cachemark.host.facts import facts
from cachemark.host.placement import usable_cpus
from cachemark.model.machine_limits import Check


def doctor(
    root: Path = Path("/"), sample_s: float = SAMPLE_S, targets: Sequence[str] = ()
) -> list[Check]:
    """Examine this machine; takes a second. `root` is the folder of /proc and /sys.

    `targets` are servers elsewhere, HOST:PORT. Raises UsageError for an invalid address.
    """
    cpus = usable_cpus()
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
        *kernel.background_activity(root, len(cpus)),
        *machine.memory(root),
        *machine.clock(root),
        *machine.open_files(),
        *kernel.environment(root),
        *network.network(root),
        *interrupts(cpus, root),
        *kernel_message_checks(root),
        *network.round_trip_checks(targets),
    ]
    return [*before, *software.software(facts(root)), *jitter_checks(cpus, root, sample_s)]
