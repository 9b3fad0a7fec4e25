"""`cluster:N:SERVER`: N servers of one kind as one target; the client distributes the keys."""

import re
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import msgspec

from cachemark.endpoints.servers.running import Member, RunningServer, merge_facts
from cachemark.endpoints.servers.spec import ServerSpec
from cachemark.model.errors import UsageError

# More are of no use on one machine.
_MAX_MEMBERS = 64
_COUNT = re.compile("[0-9]{1,4}")
# Kinds that cannot be a member of a cluster.
_NOT_IN_CLUSTER = ("cluster", "none", "remote")

Parse = Callable[[str], ServerSpec]
Start = Callable[[ServerSpec, str, float], AbstractContextManager[RunningServer]]


def parse(text: str, details: str, parse_inner: Parse) -> ServerSpec:
    """Read the number and the server in `3:memcached:memory=64`. Raises UsageError."""
    count, _, inner = details.partition(":")
    if not _COUNT.fullmatch(count) or not 1 <= int(count) <= _MAX_MEMBERS or not inner:
        raise UsageError(
            f"server {text!r}: the number or the server is wrong or missing",
            f"write cluster:3:memcached, at most {_MAX_MEMBERS}",
        )
    spec = parse_inner(inner)
    if spec.kind in _NOT_IN_CLUSTER:
        raise UsageError(
            f"server {text!r}: {spec.kind!r} cannot be one of a cluster",
            "for several running servers, write remote:HOST:PORT,HOST:PORT",
        )
    return ServerSpec(text=text, kind="cluster", details=details, inner=spec, count=int(count))


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float, start: Start) -> Generator[RunningServer]:
    """Start the servers one after the other, all on the same CPUs. Raises TrialError."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(start(inner_of(spec), cpus, ready_s)) for _ in range(spec.count)
        ]
        yield RunningServer(
            [address for server in servers for address in server.addresses],
            merge_facts("cluster", [server.facts for server in servers]),
            [
                _placed(member, f"member {number} of {spec.count}", server.facts.address)
                for number, server in enumerate(servers, 1)
                for member in server.members
            ],
            servers[0].tls,
            servers[0].login,
        )


def inner_of(spec: ServerSpec) -> ServerSpec:
    """The inner server. Only for a spec of a cluster or proxy."""
    assert spec.inner is not None
    return spec.inner


def _placed(member: Member, place: str, address: str) -> Member:
    return msgspec.structs.replace(member, name=f"{place} ({member.name} at {address})")
