"""`memcached`: the real one, as it is on PATH or at a path that is named."""

from __future__ import annotations

import getpass
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cachemark import process
from cachemark.errors import TrialError, UnsupportedError
from cachemark.outcome import ServerFacts
from cachemark.servers.running import RunningServer, died, wait_ready
from cachemark.servers.spec import ServerSpec, positive, read_options

OPTIONS = ("threads", "memory", "connections", "binary")
REMEDY = "apt-get install memcached"
_RETRY_S = 0.005


def parse(text: str, details: str) -> ServerSpec:
    """Read `memcached:threads=4,memory=1024` (memory in MB, as its -m). Raises UsageError."""
    options = read_options(text, details, OPTIONS)
    spec = ServerSpec(text=text, kind="memcached", details=details, options=options)
    for name in ("threads", "memory", "connections"):
        positive(spec, name)
    return spec


def missing(spec: ServerSpec) -> str:
    """Why it cannot be started here, or the empty string."""
    program = spec.options.get("binary", "memcached")
    return "" if shutil.which(program) else f"{program} is not on this machine: {REMEDY}"


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run it on a port that the system picks. Raises TrialError, UnsupportedError."""
    if missing(spec):
        raise UnsupportedError("memcached is not on this machine", REMEDY)
    flags = {"threads": "-t", "memory": "-m", "connections": "-c"}
    command = [spec.options.get("binary", "memcached"), "-l", "127.0.0.1", "-U", "0"]
    # It refuses to run as root unless it is told to stay so.
    command += ["-p", "-1", "-u", getpass.getuser()]
    for name, flag in flags.items():
        if name in spec.options:
            command += [flag, spec.options[name]]
    with tempfile.TemporaryDirectory(prefix="cachemark-") as folder:
        # With -p -1 the system picks the port, and memcached writes it into this file.
        ports = Path(folder) / "ports"
        with process.start(
            command, cpus=cpus, env={"MEMCACHED_PORT_FILENAME": str(ports)}
        ) as child:
            address = f"127.0.0.1:{_port(ports, child, ready_s)}"
            control, version = wait_ready("memcached", address, child, ready_s)
            facts = ServerFacts(
                kind="memcached", version=version, command=command, address=address, cpus=cpus
            )
            server = RunningServer([address], facts, control, child)
            try:
                yield server
            finally:
                server.close()
                # It has nothing to save, and takes up to a second to notice a SIGTERM.
                child.stop(grace_s=0)


def _port(ports: Path, child: process.Child, ready_s: float) -> int:
    deadline = time.monotonic() + ready_s
    while time.monotonic() < deadline:
        if child.exited() is not None:
            raise died("memcached", child)
        text = ports.read_text() if ports.exists() else ""
        for line in text.splitlines():
            if line.startswith("TCP INET: "):
                return int(line.removeprefix("TCP INET: "))
        time.sleep(_RETRY_S)
    raise TrialError(f"memcached: not listening after {ready_s:g} s")
