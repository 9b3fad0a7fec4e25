"""`remote:host:port[,host:port…]`: servers that run already, here or elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from cachemark.endpoints.servers.control_connection import Control
from cachemark.endpoints.servers.running import Member, RunningServer, together
from cachemark.endpoints.servers.spec import ServerSpec
from cachemark.host.round_trip import distance
from cachemark.model.address import host_port
from cachemark.model.errors import UsageError
from cachemark.model.outcome import ServerFacts


def parse(text: str, details: str) -> ServerSpec:
    """Read addresses, `host:port` or `unix:/path`, with commas between them. Raises UsageError."""
    addresses = details.split(",")
    for address in addresses:
        if objection := _objection(address):
            raise UsageError(f"server {text!r}: {objection}", "write remote:HOST:PORT[,HOST:PORT]")
    twice = sorted({address for address in addresses if addresses.count(address) > 1})
    if twice:
        raise UsageError(f"server {text!r}: {twice[0]} stands there twice", "name it once")
    return ServerSpec(text=text, kind="remote", details=details)


def _objection(text: str) -> str:
    """Why a text is no address; empty if it is one."""
    if text.startswith("unix:"):
        return "" if text.startswith("unix:/") else f"{text!r} has no whole path"
    try:
        host_port(text)
    except ValueError as error:
        return str(error)
    return ""


def missing(_spec: ServerSpec) -> None:
    """Whether it can be reached shows when it is used."""


def _round_trip_ns(address: str) -> int | None:
    """How far it is; None by a Unix socket, and where it would not be asked so often."""
    if address.startswith("unix:"):
        return None
    try:
        return distance(*host_port(address)).median_ns
    except OSError:
        return None


@contextmanager
def running(spec: ServerSpec, _cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Connect to each; none is started or stopped. Raises TrialError."""
    addresses = spec.details.split(",")
    with ExitStack() as stack:
        members: list[Member] = []
        facts: list[ServerFacts] = []
        for address in addresses:
            control = Control(address, ready_s)
            stack.callback(control.close)
            version = control.version()
            facts.append(
                ServerFacts(
                    kind="remote",
                    version=version,
                    command=[],
                    address=address,
                    round_trip_ns=_round_trip_ns(address),
                )
            )
            members.append(Member(name=f"remote {address}", control=control))
        yield RunningServer(addresses, together("remote", facts), members)
