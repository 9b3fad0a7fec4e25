"""Checks of round trips: on loopback, and to remote servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cachemark.host.round_trip import RoundTrips, measure_loopback, measure_round_trips
from cachemark.model.address import HostPort, parse_host_port
from cachemark.model.errors import UsageError
from cachemark.model.machine_limits import Check, Limits

# A round trip of the kernel's own takes some 20 to 60 µs where a core has to wake.
_LOOPBACK = Limits(unit="µs", warn=200)
_TARGET = Limits(unit="µs", warn=1000)


def round_trip_checks(targets: Sequence[str]) -> list[Check]:
    """Loopback first, then each target (HOST:PORT). Raises UsageError for an invalid address."""
    here = _check(
        "round trip on loopback",
        measure_loopback,
        _LOOPBACK,
        "the machine is busy, or its cores sleep deeply",
    )
    return [here, *(_target(_address(text)) for text in targets)]


def _target(at: HostPort) -> Check:
    return _check(
        f"round trip to {at}",
        lambda: measure_round_trips(at.host, at.port),
        _TARGET,
        "measure from the same network: at depth 1 the network causes most of each response time",
    )


def _address(text: str) -> HostPort:
    try:
        return parse_host_port(text.removeprefix("remote:"))
    except ValueError as error:
        raise UsageError(f"--target {error}", "write HOST:PORT") from error


def _check(name: str, measure: Callable[[], RoundTrips], limits: Limits, remedy: str) -> Check:
    try:
        trips = measure()
    except OSError as error:
        return Check(
            name=name,
            value=f"not reached: {error}",
            status="fail",
            limits="fail if it cannot be reached",
            remedy="start the server, and check for a firewall between the machines",
        )
    status = limits.classify(trips.median_ns / 1e3)
    least, mid, most = (ns / 1e3 for ns in (trips.min_ns, trips.median_ns, trips.max_ns))
    return Check(
        name=name,
        value=f"{mid:.0f} µs, {least:.0f} to {most:.0f}",
        status=status,
        limits=str(limits),
        remedy="" if status == "ok" else remedy,
    )
