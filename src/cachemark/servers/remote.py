"""`remote:host:port`: a server that runs already, here or elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from cachemark.errors import UsageError
from cachemark.outcome import ServerFacts
from cachemark.servers.control import Control
from cachemark.servers.running import RunningServer
from cachemark.servers.spec import ServerSpec


def parse(text: str, details: str) -> ServerSpec:
    """Read `remote:host:port` or `remote:unix:/path`. Raises UsageError."""
    host, _, port = details.rpartition(":")
    is_unix = details.startswith("unix:/")
    if "," in details and not is_unix:
        raise UsageError(f"server {text!r}: several addresses", "name one: remote:HOST:PORT")
    if not is_unix and (not host or not port.isdecimal() or not 0 < int(port) < 65536):
        raise UsageError(f"server {text!r}: no address", "write remote:HOST:PORT")
    return ServerSpec(text=text, kind="remote", details=details)


def missing(_spec: ServerSpec) -> str:
    """Whether it can be reached shows when it is used."""
    return ""


@contextmanager
def running(spec: ServerSpec, _cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Connect to it; it is neither started nor stopped. Raises TrialError."""
    control = Control(spec.details, ready_s)
    try:
        version = control.version()
        facts = ServerFacts(kind="remote", version=version, command=[], address=spec.details)
        yield RunningServer([spec.details], facts, control, None)
    finally:
        control.close()
