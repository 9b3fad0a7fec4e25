"""`remote:host:port[,host:port…]`: servers that already run, here or elsewhere."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from cachemark.endpoints.servers import login, tls
from cachemark.endpoints.servers.binary_control import open_control
from cachemark.endpoints.servers.control_connection import Control
from cachemark.endpoints.servers.running import Member, RunningServer, merge_facts
from cachemark.endpoints.servers.spec import ServerSpec, read_options
from cachemark.host.round_trip import measure_round_trips
from cachemark.model.address import parse_host_port
from cachemark.model.errors import UsageError
from cachemark.model.outcome import ServerFacts

# The protocols in which it may take logins.
_WIRES = ("text", "meta", "binary")


def parse(text: str, details: str) -> ServerSpec:
    """Read addresses, `host:port` or `unix:/path`, then options of TLS and logins, with commas.

    Raises UsageError.
    """
    addresses = _addresses(details)
    given = ",".join(part for part in details.split(",") if part not in addresses)
    options = read_options(text, given, (*tls.CLIENT_OPTIONS, *login.OPTIONS))
    tls.check(text, options)
    login.check(text, options)
    if tls.wanted(options) and any(address.startswith("unix:") for address in addresses):
        raise UsageError(f"server {text!r}: TLS on a Unix socket", "leave tls=yes out")
    for address in addresses:
        if reason := _invalid_address_reason(address):
            raise UsageError(f"server {text!r}: {reason}", "write remote:HOST:PORT[,HOST:PORT]")
    twice = sorted({address for address in addresses if addresses.count(address) > 1})
    if twice:
        raise UsageError(f"server {text!r}: {twice[0]} is listed twice", "list it once")
    return ServerSpec(text=text, kind="remote", details=details, options=options)


def _addresses(details: str) -> list[str]:
    return [part for part in details.split(",") if "=" not in part or part.startswith("unix:")]


def _invalid_address_reason(text: str) -> str:
    """Why a text is not an address; empty if it is one."""
    if text.startswith("unix:"):
        return "" if text.startswith("unix:/") else f"{text!r} needs a full path"
    try:
        parse_host_port(text)
    except ValueError as error:
        return str(error)
    return ""


def missing(_spec: ServerSpec) -> None:
    """Always None: only `running` finds out, as it connects."""


def _round_trip_ns(address: str) -> int | None:
    """The median round trip; None for a Unix socket, or if a connection was refused."""
    if address.startswith("unix:"):
        return None
    try:
        return measure_round_trips(*parse_host_port(address)).median_ns
    except OSError:
        return None


@contextmanager
def used_elsewhere(
    addresses: list[str],
    facts: ServerFacts,
    controls: Sequence[str],
    encryption: tls.Tls | None = None,
) -> Generator[RunningServer]:
    """A server that another host has started; its `stats` are read from here, at `controls`.

    Raises TrialError if it does not accept connections.
    """
    with ExitStack() as stack:
        members: list[Member] = []
        for address in controls:
            control = Control(address, tls=encryption)
            stack.callback(control.close)
            members.append(Member(name=f"server {address}", control=control))
        yield RunningServer(addresses, facts, members, encryption)


@contextmanager
def running(spec: ServerSpec, _cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Connect to each server; none is started or stopped. Raises TrialError."""
    addresses, encryption = _addresses(spec.details), tls.of_remote(spec.options)
    who = login.of_options(spec.options, _WIRES)
    with ExitStack() as stack:
        members: list[Member] = []
        facts: list[ServerFacts] = []
        for address in addresses:
            control = open_control(address, ready_s, encryption, who)
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
        yield RunningServer(addresses, merge_facts("remote", facts), members, encryption, who)
