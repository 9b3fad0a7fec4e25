"""Starts a server program that takes its port on the command line or in a file."""

import os
import shutil
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.running import Member, RunningServer, wait_ready
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError
from cachemark.model.outcome import ServerFacts

# Another process may take the free port before the server binds it.
_TRIES = 3
# Daemons are in these folders, which are often missing in a user's PATH.
_SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")


class LaunchResources(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of a program: its address, its port, a second free port, and an empty folder."""

    host: str
    port: int
    port2: int
    folder: Path

    @property
    def address(self) -> str:
        """The address that clients connect to."""
        return f"{self.host}:{self.port}"


class LaunchCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and the folder to run it in."""

    command: list[str]
    cwd: Path | None = None


def which(program: str) -> str | None:
    """The path of a program, on PATH or in the folders of daemons; None if there is none."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM])
    return shutil.which(program, path=path)


@contextmanager
def running_program(
    name: str,
    launch: Callable[[LaunchResources], LaunchCommand],
    cpus: str,
    ready_s: float,
    *,
    host: str,
    quirks: tuple[str, ...] = (),
) -> Generator[RunningServer]:
    """Run a program on a free port of `host`, and wait until it answers. Raises TrialError."""
    for tries_left in reversed(range(_TRIES)):
        with temporary_folder() as folder:
            port, port2 = _free_ports(host)
            resources = LaunchResources(host=host, port=port, port2=port2, folder=folder)
            to_run = launch(resources)
            with process.start(to_run.command, cpus=cpus, cwd=to_run.cwd) as child:
                try:
                    control, version = wait_ready(name, resources.address, child, ready_s)
                except TrialError:
                    if tries_left and child.exited() is not None:
                        continue
                    raise
                facts = ServerFacts(
                    kind=name,
                    version=version,
                    command=to_run.command,
                    address=resources.address,
                    cpus=cpus,
                    quirks=list(quirks),
                )
                member = Member(name=name, control=control, child=child)
                server = RunningServer([resources.address], facts, [member])
                try:
                    yield server
                finally:
                    server.close()
                return


def _free_ports(host: str) -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind((host, 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
