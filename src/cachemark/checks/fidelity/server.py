"""Runs the scripted server, and returns its log at the end."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cachemark.checks.fidelity.log import Log, read_log
from cachemark.endpoints.servers.control_connection import Control
from cachemark.endpoints.servers.engine_process import EngineProcess, Listening
from cachemark.endpoints.servers.running import exited_error, wait_ready
from cachemark.host import process
from cachemark.model.errors import TrialError

_READY_S = 20.0
_END_S = 20.0
_NAME = "scripted server"


class ScriptedServer:
    """A running scripted server."""

    def __init__(self, address: str, child: process.Child, control: Control, log: Path) -> None:
        self.address = address
        self._child = child
        self._control = control
        self._log = log

    def restart_script(self) -> None:
        """Restart the script, and clear the log. Raises TrialError."""
        self._control.reset_stats()

    def end(self) -> Log:
        """Stop the server, and return the log since the script's start. Raises TrialError."""
        self._control.close()
        if self._child.popen.stdin is not None:
            self._child.popen.stdin.close()
        if not self._child.wait(_END_S):
            raise TrialError(f"{_NAME}: did not end within {_END_S:g} s")
        if self._child.exited():
            raise exited_error(_NAME, self._child)
        return read_log(self._log)


@contextmanager
def scripted(script: str, folder: Path, cpus: str) -> Generator[ScriptedServer]:
    """Run the server on a port that the system picks, with its files in `folder`.

    Raises TrialError.
    """
    path, log = folder / "script.toml", folder / "log.json"
    path.write_text(script, encoding="utf-8")
    log.unlink(missing_ok=True)
    command = [
        process.binary_path(), "serve", "--listen", "127.0.0.1:0", "--stop-with-stdin",
        "--max-item-size", "8m", "--memory", "256m", "--script", str(path), "--log", str(log),
    ]  # fmt: skip
    with process.start(command, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        address = EngineProcess("embedded", child).answer(Listening, _READY_S).addresses[0]
        control, _ = wait_ready(_NAME, address, child, _READY_S)
        try:
            yield ScriptedServer(address, child, control, log)
        finally:
            control.close()
