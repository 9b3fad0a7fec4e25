"""Facts about the hosts before anything is measured: software, clocks, network, fitness."""

from collections.abc import Mapping

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.machine_limits import Check
from cachemark.model.run_header import HostFacts
from cachemark.runs.agents.clock import ClockReading
from cachemark.runs.agents.coordinator import ANSWER_S, Coordinator
from cachemark.runs.agents.identity import differences, own_software
from cachemark.runs.agents.messages import Examine, Identify, Identity, OfferBytes, ReceiveBytes

_EXAMINE_S = 120.0


class HostCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One host: its machine, its clock against the coordinator's, the checks that failed.

    `bytes_per_s`: the bandwidth from the server's host; None for that host itself.
    """

    facts: HostFacts
    clock: ClockReading
    bytes_per_s: float | None
    failed: list[str]
    warned: list[str]

    @property
    def machine(self) -> str:
        """The CPU, its number, and the kernel."""
        facts = self.facts
        return f"{facts.cpu_model or 'unknown CPU'}, {facts.cpus} CPUs, Linux {facts.kernel}"

    @property
    def clock_text(self) -> str:
        """How far the clock is ahead of the coordinator's."""
        offset_us, error_us = self.clock.offset_ns / 1e3, self.clock.error_ns / 1e3
        return f"{offset_us:+,.0f} ± {error_us:,.0f} µs"

    @property
    def round_trip_text(self) -> str:
        """The shortest and the median round trip to the coordinator."""
        shortest, median = self.clock.round_trip_min_ns / 1e3, self.clock.round_trip_median_ns / 1e3
        return f"{shortest:,.0f} to {median:,.0f} µs"

    @property
    def bandwidth_text(self) -> str:
        """The throughput from the server's host to this one, in Gbit/s, as text."""
        return "–" if self.bytes_per_s is None else f"{self.bytes_per_s * 8 / 1e9:,.2f} Gbit/s"

    @property
    def doctor_text(self) -> str:
        """The names of the doctor's checks that failed or warned."""
        parts = [f"fails: {', '.join(self.failed)}"] if self.failed else []
        parts += [f"warns: {', '.join(self.warned)}"] if self.warned else []
        return "; ".join(parts) or "ok"


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """All hosts by name, and their differences from the coordinator or from the hosts file."""

    hosts: dict[str, HostCheck]
    differences: list[str]


def check_all(coordinator: Coordinator) -> Checks:
    """Check every host. Raises TrialError."""
    names = [host.name for host in coordinator.hosts.hosts]
    identities = _identities(coordinator)
    clocks = coordinator.clocks()
    rates = _bandwidths(coordinator)
    examined = coordinator.ask_each(dict.fromkeys(names, Examine()), list[Check], _EXAMINE_S)
    return Checks(
        hosts={
            name: HostCheck(
                facts=identities[name].facts,
                clock=clocks[name],
                bytes_per_s=rates.get(name),
                failed=[check.name for check in examined[name] if check.status == "fail"],
                warned=[check.name for check in examined[name] if check.status == "warn"],
            )
            for name in names
        },
        differences=[*_differences(identities), *_absent_cpus(identities)],
    )


def _bandwidths(coordinator: Coordinator) -> dict[str, float]:
    """Bytes per second from the server's host to each other host, one after the other."""
    server, found = coordinator.hosts.server, dict[str, float]()
    for host in coordinator.hosts.hosts:
        if host != server:
            port = coordinator.ask(server, OfferBytes(), int, ANSWER_S)
            request = ReceiveBytes(address=server.address, port=port)
            found[host.name] = coordinator.ask(host, request, float, ANSWER_S)
    return found


def require_fit(coordinator: Coordinator) -> dict[str, HostFacts]:
    """The facts of all hosts.

    Raises UsageError if one has another cachemark or engine, or lacks CPUs of the hosts file.
    """
    identities = _identities(coordinator)
    if found := _differences(identities):
        raise UsageError("; ".join(found), "install the same cachemark on all hosts")
    if absent := _absent_cpus(identities):
        raise UsageError(
            "; ".join(absent), "write `cpus` of the hosts file as that host counts them"
        )
    return {name: identity.facts for name, identity in identities.items()}


def _differences(identities: Mapping[str, Identity]) -> list[str]:
    software = {name: identity.software for name, identity in identities.items()}
    return differences(own_software(), software)


def _absent_cpus(identities: Mapping[str, Identity]) -> list[str]:
    return [
        f"{name}: of its `cpus`, it may not use {', '.join(map(str, identity.absent_cpus))}"
        for name, identity in identities.items()
        if identity.absent_cpus
    ]


def _identities(coordinator: Coordinator) -> dict[str, Identity]:
    names = [host.name for host in coordinator.hosts.hosts]
    return coordinator.ask_each(dict.fromkeys(names, Identify()), Identity, ANSWER_S)
