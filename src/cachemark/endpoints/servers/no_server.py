"""`none`: no server, for caches inside the worker's own process."""

from collections.abc import Generator
from contextlib import contextmanager

from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import ServerSpec
from cachemark.model.errors import UsageError
from cachemark.model.outcome import ServerFacts


def parse(text: str, details: str) -> ServerSpec:
    """Read `none`. Raises UsageError."""
    if details:
        raise UsageError(f"server {text!r}: it has no options", "write none")
    return ServerSpec(text=text, kind="none")


def missing(_spec: ServerSpec) -> None:
    """Always None: cachemark starts nothing."""


@contextmanager
def running(_spec: ServerSpec, _cpus: str, _ready_s: float) -> Generator[RunningServer]:
    """A target without address, process and statistics."""
    facts = ServerFacts(kind="none", version="", command=[], address="")
    yield RunningServer([], facts, [])
