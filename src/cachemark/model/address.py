"""HOST:PORT addresses, as users type them and as servers report them."""

import re
from typing import NamedTuple

_MAX_PORT = 65535
_PORT = re.compile("[0-9]{1,5}")


class HostPort(NamedTuple):
    """An address that a server listens on. An IPv6 host is stored without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str) -> HostPort:
    """Read `host:11211`, `10.0.0.7:11211` or `[::1]:11211`.

    An IPv6 host needs brackets; without them its last group looks like a port. Raises ValueError
    with the reason.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} is not an address")
    if not (_PORT.fullmatch(port) and 0 < int(port) <= _MAX_PORT):
        raise ValueError(f"{text!r}: {port!r} is not a port from 1 to {_MAX_PORT}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or any(char in "[]/," or char.isspace() for char in bare):
        raise ValueError(f"{text!r}: {host!r} is not a host")
    if ":" in bare and bare == host:
        raise ValueError(f"{text!r}: write an IPv6 host in brackets, as in [::1]:11211")
    return HostPort(bare, int(port))
