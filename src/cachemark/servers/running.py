"""A server that runs: its address, its facts, and what it uses."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from cachemark.errors import TrialError
from cachemark.host.files import field, kib_field
from cachemark.outcome import ServerFacts
from cachemark.process import Child, cpu_ns
from cachemark.servers.control import Control

_RETRY_S = 0.005


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has used so far: CPU of all its threads, memory, number of threads."""

    cpu_ns: int
    rss_bytes: int
    rss_peak_bytes: int
    threads: int


class RunningServer:
    """A server that answers. `pid` is None for one that is not ours."""

    def __init__(
        self, addresses: list[str], facts: ServerFacts, control: Control, child: Child | None
    ) -> None:
        self.addresses = addresses
        self.facts = facts
        self._control = control
        self._child = child

    @property
    def pid(self) -> int | None:
        """The server's process id."""
        return self._child.pid if self._child else None

    def stats(self) -> dict[str, str]:
        """The server's `stats`. Raises TrialError, with the reason if the server has died."""
        try:
            return self._control.stats()
        except TrialError as error:
            if self._child and self._child.exited() is not None:
                raise died(self.facts.kind, self._child) from error
            raise

    def use(self) -> ProcessUse | None:
        """What its process has used so far; None for one that is not ours."""
        return process_use(self.pid) if self.pid is not None else None

    def close(self) -> None:
        """Close the control connection."""
        self._control.close()


def process_use(pid: int, root: Path = Path("/proc")) -> ProcessUse | None:
    """What a process has used so far; None when it is gone or /proc does not tell."""
    used_ns = cpu_ns(pid)
    try:
        status = (root / str(pid) / "status").read_text()
    except OSError:
        return None
    rss, peak = kib_field(status, "VmRSS"), kib_field(status, "VmHWM")
    threads = field(status, "Threads", ":")
    if used_ns is None or rss is None or peak is None or not threads.isdecimal():
        return None
    return ProcessUse(cpu_ns=used_ns, rss_bytes=rss, rss_peak_bytes=peak, threads=int(threads))


def wait_ready(kind: str, address: str, child: Child, timeout_s: float) -> tuple[Control, str]:
    """Connect as soon as the server listens; its version too. Raises TrialError."""
    deadline = time.monotonic() + timeout_s
    while True:
        if child.exited() is not None:
            raise died(kind, child)
        try:
            control = Control(address, timeout_s)
        except TrialError as error:
            if time.monotonic() > deadline:
                raise TrialError(f"{kind}: not listening after {timeout_s:g} s") from error
            time.sleep(_RETRY_S)
            continue
        return control, _version(kind, control, child)


def _version(kind: str, control: Control, child: Child) -> str:
    """Its version, the sign that it is ready; the connection is closed when it has none."""
    try:
        version = control.version()
        # Whoever answers must be our child, not another process on the port that it wanted.
        if child.exited() is not None:
            raise died(kind, child)
    except TrialError:
        control.close()
        raise
    return version


def died(kind: str, child: Child) -> TrialError:
    """The error that a server which has exited amounts to."""
    lines = child.log_tail().strip().splitlines()
    last = f": {lines[-1][:200]}" if lines else ""
    return TrialError(f"{kind}: the server exited with status {child.exited()}{last}")
