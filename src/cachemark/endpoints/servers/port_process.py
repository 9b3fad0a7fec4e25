"""A program that is told its port: how it is started, whatever program it is."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.running import Member, RunningServer, wait_ready
from cachemark.host import process
from cachemark.model.errors import TrialError
from cachemark.model.outcome import ServerFacts

# Between the moment that a port is found free and the server's bind another may take it.
_TRIES = 3
# Daemons are here; the PATH of a user often leaves them out.
_SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program is to live: its port, another for itself, an empty folder of its own."""

    port: int
    port2: int
    folder: Path

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A command and the folder that it is run in."""

    command: list[str]
    cwd: Path | None = None


def which(program: str) -> str | None:
    """Where a program is, on PATH or where daemons are."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM])
    return shutil.which(program, path=path)


@contextmanager
def running_program(
    name: str,
    launch: Callable[[Place], Launch],
    cpus: str,
    ready_s: float,
    quirks: tuple[str, ...] = (),
) -> Generator[RunningServer]:
    """Run it on a free port until it answers. Raises TrialError."""
    for left in reversed(range(_TRIES)):
        with tempfile.TemporaryDirectory(prefix="cachemark-") as folder:
            port, port2 = _free_ports()
            place = Place(port=port, port2=port2, folder=Path(folder))
            wanted = launch(place)
            with process.start(wanted.command, cpus=cpus, cwd=wanted.cwd) as child:
                try:
                    control, version = wait_ready(name, place.address, child, ready_s)
                except TrialError:
                    if left and child.exited() is not None:
                        continue
                    raise
                facts = ServerFacts(
                    kind=name,
                    version=version,
                    command=wanted.command,
                    address=place.address,
                    cpus=cpus,
                    quirks=list(quirks),
                )
                member = Member(name=name, control=control, child=child)
                server = RunningServer([place.address], facts, [member])
                try:
                    yield server
                finally:
                    server.close()
                return


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
