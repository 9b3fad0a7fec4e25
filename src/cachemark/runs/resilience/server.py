"""A memcached that can be frozen, killed, and started again on the same port.

Its counters go on after a restart.
"""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

import msgspec

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.endpoints.servers.spec import LOOPBACK, ServerSpec
from cachemark.model.errors import TrialError

_SPEC = parse_spec("memcached:threads=1,memory=64,connections=1024")
_RESTART_S = 5.0
_RETRY_S = 0.02


class _Counts(NamedTuple):
    """Connections that clients opened, reads that found nothing, and all reads and writes."""

    connections: int
    misses: int
    answered: int


class FragileServer:
    """A server of a cell. Use as a context manager: it ends the process, frozen or not.

    `listen` and `port` are where it listens; with port 0 the system picks one. A restart does not
    change its `address`. `options` are further options of `memcached:`.
    """

    def __init__(
        self, listen: str = LOOPBACK, port: int = 0, options: Mapping[str, str] | None = None
    ) -> None:
        spec = msgspec.structs.replace(_SPEC, listen=listen, port=port)
        self._spec = _with_options(spec, options or {})
        self._stack = ExitStack()
        self._server: RunningServer | None = None
        self.address = ""
        self._own_connections = 0
        self._before_kill = _Counts(0, 0, 0)

    def __enter__(self) -> "FragileServer":
        self._start(self._spec.port)
        self._own_connections = int(self._running.stats()["total_connections"])
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.address.rpartition(":")[2])

    @property
    def pids(self) -> list[int]:
        """Its process, if it runs."""
        return [] if self._server is None else self._server.pids

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
        self._before_kill = self._counts()
        self._signal(signal.SIGKILL)
        self._stack.close()
        self._server = None

    def restart(self, options: Mapping[str, str] | None = None) -> None:
        """Start an empty server on the same port, with other options if there are.

        Raises TrialError.
        """
        if options:
            self._spec = _with_options(self._spec, options)
        until = time.monotonic() + _RESTART_S
        while True:
            try:
                self._start(self.port)
            except TrialError:
                # A connection that came while the port was closed may still hold it.
                if time.monotonic() > until:
                    raise
                time.sleep(_RETRY_S)
            else:
                return

    def connections(self) -> int:
        """The number of connections that clients have opened."""
        return self._counts().connections

    def misses(self) -> int:
        """The number of reads that found nothing."""
        return self._counts().misses

    def answered(self) -> int:
        """The number of reads and writes that it has executed."""
        return self._counts().answered

    def _counts(self) -> _Counts:
        before = self._before_kill
        if self._server is None:
            return before
        stats = self._server.stats()
        return _Counts(
            before.connections + int(stats["total_connections"]) - self._own_connections,
            before.misses + int(stats["get_misses"]),
            before.answered + int(stats["cmd_get"]) + int(stats["cmd_set"]),
        )

    @property
    def _running(self) -> RunningServer:
        if self._server is None:
            raise TrialError("the server does not run")
        return self._server

    def _start(self, port: int) -> None:
        spec = msgspec.structs.replace(self._spec, port=port)
        self._server = self._stack.enter_context(running(spec))
        self.address = self._server.addresses[0]

    def _signal(self, number: signal.Signals) -> None:
        if self._running.pid is not None:
            os.kill(self._running.pid, number)


def _with_options(spec: ServerSpec, options: Mapping[str, str]) -> ServerSpec:
    return msgspec.structs.replace(spec, options={**spec.options, **options})
