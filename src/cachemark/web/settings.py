"""Settings of `cachemark web`: the served folder, and who may open its pages."""

import ipaddress
import secrets
import socket
from pathlib import Path

import msgspec


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The store, the address, and what visitors may do.

    Visitors must know the `token`, unless it is empty. `session` is the cookie of a visitor who has
    shown it; every form of our own pages carries `csrf`. `names` are the host names for this server
    in requests, besides IP addresses. `trust_commands`: a run that a page starts may name programs,
    files and other machines. `drive` is the folder with the events of a drive beside the store.
    """

    root: Path
    host: str = "127.0.0.1"
    port: int = 0
    read_only: bool = False
    drive: Path | None = None
    trust_commands: bool = False
    token: str = ""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    session: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def scheme(self) -> str:
        """The scheme of its address."""
        return "https" if self.tls_cert else "http"

    @property
    def names(self) -> frozenset[str]:
        """The host names that a request may name, so that DNS rebinding finds no other."""
        own = {"localhost"} if is_loopback(self.host) else {"localhost", socket.gethostname()}
        return frozenset(name.lower() for name in (*own, self.host))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def new_token() -> str:
    """A token for visitors from other machines."""
    return secrets.token_urlsafe(24)
