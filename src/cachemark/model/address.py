"""HOST:PORT, as it is typed and as servers say where they listen."""

from __future__ import annotations

from typing import NamedTuple

_MOST_PORTS = 65535


class HostPort(NamedTuple):
    """Where something listens; an IPv6 host is without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def host_port(text: str) -> HostPort:
    """Read `host:11211`, `10.0.0.7:11211` or `[::1]:11211`.

    Raises ValueError with what is wrong; an IPv6 host without brackets is refused, as its last part
    cannot be told from a port.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} is no address")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _MOST_PORTS):
        raise ValueError(f"{text!r}: {port!r} is no port from 1 to {_MOST_PORTS}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or any(sign in "[]/," or sign.isspace() for sign in bare):
        raise ValueError(f"{text!r}: {host!r} is no host")
    if ":" in bare and bare == host:
        raise ValueError(f"{text!r}: an IPv6 host stands in brackets, as in [::1]:11211")
    return HostPort(bare, int(port))
