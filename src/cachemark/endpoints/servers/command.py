"""`command:PROGRAM ARGS {port}`: any server that takes its port on the command line."""

import shlex
from collections.abc import Generator
from contextlib import contextmanager

from cachemark.endpoints.servers.port_process import (
    LaunchCommand,
    LaunchResources,
    running_program,
    which,
)
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import Missing, ServerSpec
from cachemark.model.errors import UsageError


def parse(text: str, details: str) -> ServerSpec:
    """Read `command:PROGRAM ARGS {port}`. Raises UsageError."""
    if "{port}" not in details:
        raise UsageError(
            f"server {text!r}: the command has no place for the port",
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
    """Why the program cannot be started here; None if it can."""
    program = shlex.split(spec.details)[0]
    if which(program):
        return None
    return Missing(
        reason=f"server: {program} is not on this machine",
        remedy="install it, or give its full path",
    )


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run the program on a free port. Raises TrialError, UnsupportedError."""
    if absent := missing(spec):
        raise absent.error()

    def launch(resources: LaunchResources) -> LaunchCommand:
        words = [word.replace("{port}", str(resources.port)) for word in shlex.split(spec.details)]
        return LaunchCommand(command=words)

    with running_program("command", launch, cpus, ready_s, host=spec.listen) as server:
        yield server
