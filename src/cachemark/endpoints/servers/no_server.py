"""`none`: no server at all, for caches that live in the worker's own process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import ServerSpec
from cachemark.model.errors import UsageError
from cachemark.model.outcome import ServerFacts


def parse(text: str, details: str) -> ServerSpec:
    """Read `none`. Raises UsageError."""
    if details:
        raise UsageError(f"server {text!r}: no server has no options", "write none")
    return ServerSpec(text=text, kind="none")


def missing(_spec: ServerSpec) -> None:
    """Nothing is needed."""


@contextmanager
def running(_spec: ServerSpec, _cpus: str, _ready_s: float) -> Generator[RunningServer]:
    """A target without an address, a process or statistics."""
    facts = ServerFacts(kind="none", version="", command=[], address="")
    yield RunningServer([], facts, [])
