"""`memcached`: the program on PATH, or at the path in the option `binary`."""

from __future__ import annotations

import getpass
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cachemark.endpoints.servers.memory_option import check_memory, memory_mib
from cachemark.endpoints.servers.running import Member, RunningServer, exited_error, wait_ready
from cachemark.endpoints.servers.spec import Missing, ServerSpec, positive, read_options
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.outcome import ServerFacts
from cachemark.model.units import MIB

_FLAGS = {"threads": "-t", "memory": "-m", "connections": "-c"}
OPTIONS = (*_FLAGS, "unix", "verbose", "binary")
_VERBOSE = ("1", "2", "3")
REMEDY = "apt-get install memcached"
_RETRY_S = 0.005


def parse(text: str, details: str) -> ServerSpec:
    """Read `memcached:threads=4,memory=1g`. Raises UsageError."""
    options = read_options(text, details, OPTIONS)
    spec = ServerSpec(text=text, kind="memcached", details=details, options=options)
    positive(spec, "threads")
    positive(spec, "connections")
    check_memory(spec, least=MIB)
    if options.get("verbose", "1") not in _VERBOSE:
        raise UsageError(f"server {text!r}: verbose={options['verbose']}", "verbose is 1, 2 or 3")
    if options.get("unix", "no") not in ("yes", "no"):
        raise UsageError(f"server {text!r}: unix={options['unix']}", "unix is yes or no")
    return spec


def missing(spec: ServerSpec) -> Missing | None:
    """Why memcached cannot be started here; None if it can."""
    program = _program(spec)
    if shutil.which(program):
        return None
    return Missing(reason=f"{program} is not on this machine", remedy=REMEDY)


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run memcached on a port that the system picks, or on a Unix socket.

    Raises TrialError, UnsupportedError.
    """
    if absent := missing(spec):
        raise absent.error()
    with temporary_folder() as folder:
        socket = folder / "socket" if spec.options.get("unix") == "yes" else None
        # memcached writes the port on which it listens into this file.
        ports = folder / "ports"
        env = {"MEMCACHED_PORT_FILENAME": str(ports)}
        command = _command(spec, socket)
        with process.start(command, cpus=cpus, env=env) as child:
            port = 0 if socket else _port(ports, child, ready_s)
            address = f"unix:{socket}" if socket else f"{spec.listen}:{port}"
            control, version = wait_ready("memcached", address, child, ready_s)
            facts = ServerFacts(
                kind="memcached", version=version, command=command, address=address, cpus=cpus
            )
            member = Member(name="memcached", control=control, child=child)
            server = RunningServer([address], facts, [member])
            try:
                yield server
            finally:
                server.close()
                # SIGKILL: it has nothing to save, and takes up to a second to notice a SIGTERM.
                child.stop(grace_s=0)


def _program(spec: ServerSpec) -> str:
    return spec.options.get("binary", "memcached")


def _command(spec: ServerSpec, socket: Path | None) -> list[str]:
    """The command line; with a Unix socket there is no port."""
    port = str(spec.port or -1)  # -1: the system picks one
    listen = ["-s", str(socket)] if socket else ["-l", spec.listen, "-p", port, "-U", "0"]
    # memcached only runs as root if -u says so.
    command = [_program(spec), *listen, "-u", getpass.getuser()]
    for name, flag in _FLAGS.items():
        if name in spec.options:
            value = spec.options[name]
            command += [flag, str(memory_mib(value)) if name == "memory" else value]
    if "verbose" in spec.options:
        command.append("-" + "v" * int(spec.options["verbose"]))
    return command


def _port(ports: Path, child: process.Child, ready_s: float) -> int:
    deadline = time.monotonic() + ready_s
    while time.monotonic() < deadline:
        if child.exited() is not None:
            raise exited_error("memcached", child)
        text = ports.read_text() if ports.exists() else ""
        for line in text.splitlines():
            if line.startswith("TCP INET: "):
                return int(line.removeprefix("TCP INET: "))
        time.sleep(_RETRY_S)
    raise TrialError(f"memcached: not listening after {ready_s:g} s")
