"""The null responder: it answers every request with a hit of the tape's first key."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cachemark.endpoints.servers.embedded import announcement
from cachemark.endpoints.servers.running import Member, RunningServer
from cachemark.host import process
from cachemark.model.outcome import ServerFacts

_READY_S = 10.0


@contextmanager
def responder(tape: Path, cpus: str) -> Generator[RunningServer]:
    """Run the responder on a free port; it has no `stats`. Raises TrialError."""
    command = [process.binary_path(), "null-server", "--tape", str(tape), "--stop-with-stdin"]
    with process.start(command, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        announced = announcement(child, _READY_S)
        facts = ServerFacts(
            kind="null", version="", command=command, address=announced.addresses[0], cpus=cpus
        )
        server = RunningServer(announced.addresses, facts, [Member(name="null", child=child)])
        try:
            yield server
        finally:
            server.close()
