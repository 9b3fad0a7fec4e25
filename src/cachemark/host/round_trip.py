"""How far a server is: the time of a round trip that its kernel answers by itself."""

from __future__ import annotations

import socket
import time
from statistics import median

import msgspec

# Fewer than any accept queue holds, as nobody has to accept them.
_TIMES = 21
_PATIENCE_S = 2.0


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """Round trips to an address, in ns."""

    least_ns: int
    median_ns: int
    most_ns: int


def distance(host: str, port: int, times: int = _TIMES) -> Distance:
    """Open and close so many connections, one after the other. Raises OSError.

    A SYN and its answer are one round trip, and no program of the other side is in it.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    took: list[int] = []
    for _ in range(times):
        with socket.socket(family, kind, protocol) as client:
            client.settimeout(_PATIENCE_S)
            began = time.perf_counter_ns()
            client.connect(address)
            took.append(time.perf_counter_ns() - began)
    return Distance(least_ns=min(took), median_ns=round(median(took)), most_ns=max(took))


def loopback() -> Distance:
    """To this machine itself. Raises OSError."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _TIMES) as server:
        return distance(*server.getsockname())
