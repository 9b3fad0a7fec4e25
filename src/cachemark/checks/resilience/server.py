"""A memcached that can be frozen, killed, and started again on the same port."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack

import msgspec

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.model.errors import TrialError

_SPEC = parse_spec("memcached:threads=1,memory=64,connections=1024")
_RESTART_S = 5.0
_RETRY_S = 0.02


class FragileServer:
    """The server of one cell. Use as a context manager: it ends the process, frozen or not."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._server: RunningServer | None = None
        self._own_connections = 0

    def __enter__(self) -> FragileServer:
        self._start(port=0)
        self._own_connections = self.connections()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def address(self) -> str:
        """Where it listens. A restart does not change it."""
        return self._running.addresses[0]

    @property
    def version(self) -> str:
        """The version that it reports."""
        return self._running.facts.version

    def freeze(self) -> None:
        """Stop its process; the kernel still accepts connections."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, and wait until its port is closed."""
        self._signal(signal.SIGKILL)
        self._stack.close()

    def restart(self) -> None:
        """Start an empty server on the same port. Raises TrialError."""
        port = int(self.address.rpartition(":")[2])
        until = time.monotonic() + _RESTART_S
        while True:
            try:
                self._start(port)
            except TrialError:
                # A connection that came while the port was closed may still hold it.
                if time.monotonic() > until:
                    raise
                time.sleep(_RETRY_S)
            else:
                return

    def connections(self) -> int:
        """How many connections clients have opened since the start, or since a restart."""
        return int(self._running.stats()["total_connections"]) - self._own_connections

    @property
    def _running(self) -> RunningServer:
        if self._server is None:
            raise TrialError("the server was not started")
        return self._server

    def _start(self, port: int) -> None:
        spec = msgspec.structs.replace(_SPEC, port=port)
        self._server = self._stack.enter_context(running(spec))

    def _signal(self, number: signal.Signals) -> None:
        if self._running.pid is not None:
            os.kill(self._running.pid, number)
