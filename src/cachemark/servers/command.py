"""`command:PROGRAM ARGS {port}`: any server that can be told its port."""

from __future__ import annotations

import shlex
import shutil
import socket
from collections.abc import Generator
from contextlib import contextmanager

from cachemark import process
from cachemark.errors import TrialError, UnsupportedError, UsageError
from cachemark.outcome import ServerFacts
from cachemark.servers.running import RunningServer, wait_ready
from cachemark.servers.spec import ServerSpec

# Between the moment that a port is found free and the server's bind another may take it.
_TRIES = 3


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


def missing(spec: ServerSpec) -> str:
    """Why it cannot be started here, or the empty string."""
    program = shlex.split(spec.details)[0]
    return "" if shutil.which(program) else f"{program} is not on this machine"


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run it on a free port. Raises TrialError, UnsupportedError."""
    if reason := missing(spec):
        raise UnsupportedError(f"server: {reason}", "install it, or give its whole path")
    for left in reversed(range(_TRIES)):
        port = _free_port()
        command = [word.replace("{port}", str(port)) for word in shlex.split(spec.details)]
        address = f"127.0.0.1:{port}"
        with process.start(command, cpus=cpus) as child:
            try:
                control, version = wait_ready("command", address, child, ready_s)
            except TrialError:
                if left and child.exited() is not None:
                    continue
                raise
            facts = ServerFacts(
                kind="command", version=version, command=command, address=address, cpus=cpus
            )
            server = RunningServer([address], facts, control, child)
            try:
                yield server
            finally:
                server.close()
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
