"""Checks of the network: TCP's settings, queues, filters, losses."""

from collections.abc import Callable, Sequence
from pathlib import Path

from cachemark.host import counters
from cachemark.host.files import read
from cachemark.host.round_trip import RoundTrips, measure_loopback, measure_round_trips
from cachemark.model.address import HostPort, parse_host_port
from cachemark.model.errors import UsageError
from cachemark.model.machine_limits import (
    Check,
    Limits,
    info_check,
    judged_check,
    least_check,
    limit_check,
)

# A round trip in the kernel takes some 20 to 60 µs if a core has to wake.
_LOOPBACK = Limits(unit="µs", warn=200)
_TARGET = Limits(unit="µs", warn=1000)
_SYSCTL = "proc/sys/net"
_MIN_PORTS = 10_000
_MIN_BACKLOG = 1024
# Since boot, of all programs; each trial has its own count.
_RETRANSMITS = Limits(unit="per million segments since boot", warn=100)
_DROPPED = Limits(unit="times since boot", warn=0)
_TOLD = {
    "congestion control": "ipv4/tcp_congestion_control",
    "TCP timestamps": "ipv4/tcp_timestamps",
    "slow start after idle": "ipv4/tcp_slow_start_after_idle",
    "port reuse": "ipv4/tcp_tw_reuse",
    "busy polling": "core/busy_poll",
    "queueing": "core/default_qdisc",
}


def network(root: Path) -> list[Check]:
    """TCP's settings and losses."""
    return [
        info_check("loopback MTU", read(root / "sys/class/net/lo/mtu")),
        info_check("interfaces", _interfaces(root)),
        *(info_check(name, read(root / _SYSCTL / path)) for name, path in _TOLD.items()),
        _ports(root),
        _backlog(root),
        _filter(root),
        *_losses(counters.counters(root)),
    ]


def _interfaces(root: Path) -> str:
    """The interfaces that are up, with their speed if they report it."""
    names: list[str] = []
    for folder in sorted((root / "sys/class/net").glob("*")):
        if folder.name != "lo" and read(folder / "operstate") == "up":
            speed = read(folder / "speed")
            names.append(f"{folder.name} {speed} Mbit/s" if speed.isdecimal() else folder.name)
    return ", ".join(names)


def _ports(root: Path) -> Check:
    """Each connection needs a local port, and frees it a minute after its end."""
    words = read(root / _SYSCTL / "ipv4/ip_local_port_range").split()
    known = len(words) == 2 and all(word.isdecimal() for word in words)
    count = int(words[1]) - int(words[0]) + 1 if known else None
    remedy = 'sysctl net.ipv4.ip_local_port_range="10240 65000"'
    return least_check("local ports", count, _MIN_PORTS, remedy)


def _backlog(root: Path) -> Check:
    text = read(root / _SYSCTL / "core/somaxconn")
    count = int(text) if text.isdecimal() else None
    remedy = f"sysctl net.core.somaxconn={_MIN_BACKLOG}"
    return least_check("accept queue", count, _MIN_BACKLOG, remedy)


def _filter(root: Path) -> Check:
    """Connection tracking inspects each packet, also on loopback."""
    tracked = read(root / _SYSCTL / "netfilter/nf_conntrack_count")
    return judged_check(
        "connection tracking",
        f"{tracked} connections" if tracked else "off",
        "warn if it tracks any",
        "iptables -t raw -A OUTPUT -o lo -j NOTRACK",
        "ok" if tracked in ("", "0") else "warn",
    )


def _losses(counters: dict[str, int]) -> list[Check]:
    sent, again = counters.get("segments_sent"), counters.get("retransmits")
    part = 1e6 * again / max(1, sent) if sent is not None and again is not None else None
    remedy = "find out where packets are lost: `nstat -a`, `ip -s link`"
    return [
        limit_check("TCP retransmits", part, _RETRANSMITS, remedy),
        limit_check("connections not accepted", counters.get("accept_drops"), _DROPPED, remedy),
        limit_check("packets dropped", counters.get("packet_drops"), _DROPPED, remedy),
    ]


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
    value = f"{mid:.0f} µs, {least:.0f} to {most:.0f}"
    return judged_check(name, value, str(limits), remedy, status)
