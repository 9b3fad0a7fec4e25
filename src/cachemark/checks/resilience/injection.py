"""Makes the faults: one class for each maker, all with the same methods."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager

from cachemark.checks.resilience.answers import DataLoss
from cachemark.checks.resilience.fault_proxy import FaultProxy, fault_proxy
from cachemark.checks.resilience.faults import (
    Caller,
    Fault,
    Freeze,
    Proxy,
    ProxyFault,
    Restart,
)
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


class _Proxied(Injection):
    """The proxy makes the fault; the server behind it is well."""

    def __init__(self, server: FragileServer, proxy: FaultProxy, fault: ProxyFault) -> None:
        super().__init__(server)
        self._proxy, self._fault = proxy, fault
        self.address = proxy.address

    def begin(self) -> int:
        return self._proxy.apply(self._fault)

    def end(self) -> int:
        return self._proxy.apply(None)

    def connections(self) -> int:
        return self._proxy.connections()


@contextmanager
def injection(fault: Fault) -> Generator[Injection]:
    """Start a server that can have a fault. Raises TrialError."""
    with FragileServer() as server:
        match fault.make:
            case Freeze():
                yield _Frozen(server)
            case Restart():
                yield _Restarted(server)
            case Proxy(fault=proxy_fault):
                with fault_proxy(server.address) as proxy:
                    yield _Proxied(server, proxy, proxy_fault)
            case Caller(delay_ms=delay_ms):
                with fault_proxy(server.address) as proxy:
                    yield _Proxied(server, proxy, {"kind": "delay", "delay_ms": delay_ms})
