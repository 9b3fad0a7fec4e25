"""The engine's fault proxy: a process between client and server that misbehaves on command."""

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.engine_process import EngineProcess
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import DECODE_ERRORS, TrialError

_NAME = "fault proxy"


class _Answer(msgspec.Struct, frozen=True):
    """One line of its stdout."""

    listening: str = ""
    applied_ns: int = 0


class _Event(msgspec.Struct, frozen=True):
    """One line of its log."""

    event: str


class FaultProxy(EngineProcess):
    """A running fault proxy."""

    def __init__(self, child: process.Child, log: Path) -> None:
        super().__init__(_NAME, child)
        self._log = log
        self.address = self.answer(_Answer).listening

    def apply(self, fault: Mapping[str, object] | None) -> int:
        """Begin a fault, or end it with None; the time in monotonic ns. Raises TrialError."""
        return self.ask(msgspec.json.encode({"fault": fault}), _Answer).applied_ns

    def connections(self) -> int:
        """How many connections it has accepted. Raises TrialError."""
        # The proxy may have written only a part of the last line.
        whole = self._log.read_bytes().rpartition(b"\n")[0].splitlines()
        try:
            events = [msgspec.json.decode(line, type=_Event).event for line in whole]
        except DECODE_ERRORS as error:
            raise TrialError(f"{_NAME}: malformed log: {error}") from error
        return events.count("accepted")


@contextmanager
def fault_proxy(upstream: str) -> Generator[FaultProxy]:
    """Run a fault proxy before a server. Raises TrialError."""
    with temporary_folder() as folder:
        log = folder / "log"
        command = [process.binary_path(), "fault-proxy", "--listen", "127.0.0.1:0"]
        command += ["--upstream", upstream, "--log", str(log)]
        with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            yield FaultProxy(child, log)
