"""A target that runs: its addresses, its facts, and what it uses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.control_connection import Control, SilentError
from cachemark.host.files import field, kib_field
from cachemark.host.process import Child, cpu_ns
from cachemark.model.errors import TrialError
from cachemark.model.outcome import ServerFacts
from cachemark.model.server_stats import ServerStats, total

_RETRY_S = 0.005
_FIRST_ANSWER_S = 2.0


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has used so far: CPU of all its threads, memory, number of threads."""

    cpu_ns: int
    rss_bytes: int
    rss_peak_bytes: int
    threads: int


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A process or a server that is a part of the target; most targets have one.

    `control` is None for one that has no `stats` (a proxy), `child` for one that is not ours.
    """

    name: str
    control: Control | None = None
    child: Child | None = None


class RunningServer:
    """A target that answers: a server, several used as one, or none at all."""

    def __init__(self, addresses: list[str], facts: ServerFacts, members: Sequence[Member]) -> None:
        self.addresses = addresses
        self.facts = facts
        self.members = list(members)

    @property
    def pids(self) -> list[int]:
        """The process ids of all that are ours."""
        return [member.child.pid for member in self.members if member.child]

    @property
    def pid(self) -> int | None:
        """The process id of the first that is ours; None where none is."""
        return next(iter(self.pids), None)

    def stats(self) -> ServerStats:
        """The `stats` of all, counters added up; empty where there is none to ask.

        Raises TrialError, with the reason if a member has died.
        """
        return total(self.member_stats())

    def member_stats(self) -> list[ServerStats]:
        """The `stats` of each member that has them. Raises TrialError as `stats` does."""
        self.check()
        return [self._stats_of(member) for member in self.members if member.control]

    def use(self) -> ProcessUse | None:
        """What its processes have used so far; None where one of them is not ours or is gone."""
        uses = [process_use(member.child.pid) for member in self.members if member.child]
        known = [use for use in uses if use is not None]
        return added(known) if known and len(known) == len(self.members) else None

    def check(self) -> None:
        """Raise TrialError when a member has died."""
        for member in self.members:
            if member.child and member.child.exited() is not None:
                raise died(member.name, member.child)

    def close(self) -> None:
        """Close the control connections."""
        for member in self.members:
            if member.control:
                member.control.close()

    def _stats_of(self, member: Member) -> ServerStats:
        if member.control is None:
            return ServerStats()
        try:
            return member.control.stats()
        except TrialError:
            # Why it broke off is better told by its death, where it died.
            self.check()
            raise


def added(uses: Sequence[ProcessUse]) -> ProcessUse:
    """The use of several processes; the sum of their peaks is a bound: they need not coincide."""
    return ProcessUse(
        cpu_ns=sum(use.cpu_ns for use in uses),
        rss_bytes=sum(use.rss_bytes for use in uses),
        rss_peak_bytes=sum(use.rss_peak_bytes for use in uses),
        threads=sum(use.threads for use in uses),
    )


def together(kind: str, facts: list[ServerFacts], command: list[str] | None = None) -> ServerFacts:
    """The facts of several servers used as one; those of one alone are its own."""
    if len(facts) == 1 and not command:
        return facts[0]
    return ServerFacts(
        kind=kind,
        version=", ".join(dict.fromkeys(one.version for one in facts)),
        command=command or [],
        address=",".join(one.address for one in facts),
        cpus=facts[0].cpus,
        quirks=sorted({quirk for one in facts for quirk in one.quirks}),
        members=facts,
    )


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
    """Connect as soon as the server listens; its version too. Raises TrialError.

    Some listen before they serve, and never answer a connection of that moment (yrmcds): whoever
    is silent is asked again on another one.
    """
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
        control.patience(min(_FIRST_ANSWER_S, timeout_s))
        try:
            version = _version(kind, control, child)
        except SilentError:
            if time.monotonic() > deadline:
                raise
            continue
        control.patience(timeout_s)
        return control, version


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
    last = child.last_words()
    how = f"the server exited with status {child.exited()}"
    return TrialError(f"{kind}: {how}" + (f": {last}" if last else ""))
