"""The network round-trip time to a server, without any work by the server program."""

import socket
import time
from statistics import median

import msgspec

# They must fit in an accept queue: the server may accept none of these connections.
_CONNECTIONS = 21
_TIMEOUT_S = 2.0


class RoundTrips(msgspec.Struct, frozen=True, kw_only=True):
    """The round-trip times to an address, in ns."""

    min_ns: int
    median_ns: int
    max_ns: int


def measure_round_trips(host: str, port: int, connections: int = _CONNECTIONS) -> RoundTrips:
    """Time the opening of connections, one after the other. Raises OSError.

    `connect` takes one round trip (SYN and SYN-ACK), which the other side's kernel answers.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    took: list[int] = []
    for _ in range(connections):
        with socket.socket(family, kind, protocol) as client:
            client.settimeout(_TIMEOUT_S)
            began = time.perf_counter_ns()
            client.connect(address)
            took.append(time.perf_counter_ns() - began)
    return RoundTrips(min_ns=min(took), median_ns=round(median(took)), max_ns=max(took))


def measure_loopback() -> RoundTrips:
    """The round-trip times on loopback. Raises OSError."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _CONNECTIONS) as server:
        return measure_round_trips(*server.getsockname())
