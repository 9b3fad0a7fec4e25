"""Makes the faults: one class for each maker, all with the same methods."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager

from cachemark.checks.resilience.answers import DataLoss
from cachemark.checks.resilience.faults import Fault, Freeze
from cachemark.checks.resilience.server import FragileServer


class Injection(ABC):
    """A server with a fault that can begin and end; both return when, in ns of CLOCK_MONOTONIC.

    `address` is where clients connect; `loss` is set at the end of a fault that loses data.
    """

    def __init__(self, server: FragileServer) -> None:
        self._server = server
        self.address = server.address
        self.server_version = server.version
        self.loss: DataLoss | None = None

    @abstractmethod
    def begin(self) -> int:
        """Begin the fault. Raises TrialError."""

    @abstractmethod
    def end(self) -> int:
        """End the fault. Raises TrialError."""

    def connections(self) -> int:
        """How many connections have been opened. Raises TrialError."""
        return self._server.connections()


class _Frozen(Injection):
    def begin(self) -> int:
        self._server.freeze()
        return time.monotonic_ns()

    def end(self) -> int:
        ended_ns = time.monotonic_ns()
        self._server.thaw()
        return ended_ns


class _Restarted(Injection):
    def begin(self) -> int:
        killed_ns = time.monotonic_ns()
        self._server.kill()
        return killed_ns

    def end(self) -> int:
        self.loss = DataLoss(restarted_ns=time.monotonic_ns())
        self._server.restart()
        return time.monotonic_ns()


@contextmanager
def injection(fault: Fault) -> Generator[Injection]:
    """Start a server that can have a fault. Raises TrialError."""
    with FragileServer() as server:
        yield _Frozen(server) if isinstance(fault.make, Freeze) else _Restarted(server)
