"""`command:PROGRAM ARGS {port}`: any server that can be told its port."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from contextlib import contextmanager

from cachemark.endpoints.servers.port_process import Launch, Place, running_program, which
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import Missing, ServerSpec
from cachemark.model.errors import UsageError


def parse(text: str, details: str) -> ServerSpec:
    """Read `command:PROGRAM ARGS {port}`. Raises UsageError."""
    if "{port}" not in details:
        raise UsageError(
            f"server {text!r}: the command does not say where its port goes",
            "put {port} in it: command:/path/to/server --port {port}",
        )
    try:
        words = shlex.split(details)
    except ValueError as error:
        raise UsageError(f"server {text!r}: {error}", "check the quotes") from error
    if not words or "{port}" in words[0]:
        raise UsageError(f"server {text!r}: no program", "write command:PROGRAM ARGS {port}")
    return ServerSpec(text=text, kind="command", details=details)


def missing(spec: ServerSpec) -> Missing | None:
    """Why it cannot be started here."""
    program = shlex.split(spec.details)[0]
    if which(program):
        return None
    return Missing(
        reason=f"server: {program} is not on this machine",
        remedy="install it, or give its whole path",
    )


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run it on a free port. Raises TrialError, UnsupportedError."""
    if absent := missing(spec):
        raise absent.error()

    def launch(place: Place) -> Launch:
        words = [word.replace("{port}", str(place.port)) for word in shlex.split(spec.details)]
        return Launch(command=words)

    with running_program("command", launch, cpus, ready_s) as server:
        yield server
