"""A running target: its addresses, facts, statistics and use of resources."""

import ssl
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.binary_control import open_control
from cachemark.endpoints.servers.control_connection import Control, ReplyTimeoutError
from cachemark.endpoints.servers.login import Login
from cachemark.endpoints.servers.tls import Tls
from cachemark.host.files import field, kib_field
from cachemark.host.process import Child, cpu_ns
from cachemark.model.errors import TrialError
from cachemark.model.outcome import ServerFacts
from cachemark.model.server_stats import ServerStats, merge_stats

_RETRY_S = 0.005
_FIRST_ANSWER_S = 2.0
_EXIT_S = 2.0
# What memcached's last words mean for who starts it by a command.
_REMEDIES = {
    "proxy_config=": "this memcached has no proxy: start one of ./configure --enable-proxy",
    "can't run as root": "add -u nobody to the command",
    **dict.fromkeys(
        ("Too many open files", "Maxconns setting is too low"),
        "its limit of connections is below what its own threads need (5 files each, and 16): "
        "memcached:connections=1024, or -c 1024 in a command",
    ),
}


class ProcessUse(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of all threads of a process since its start, its memory, its number of threads."""

    cpu_ns: int
    rss_bytes: int
    rss_peak_bytes: int
    threads: int


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A server or proxy that is a part of the target; most targets have one.

    `control` is None for a proxy (it has no `stats` of its own), `child` for a server that
    cachemark did not start.
    """

    name: str
    control: Control | None = None
    child: Child | None = None


class RunningServer:
    """The target of the clients: a server, several used as one, or none.

    `tls` is how clients encrypt their connections, `login` how they log in; None: they do not.
    `between` has the process ids of what is between clients and servers.
    """

    def __init__(
        self,
        addresses: list[str],
        facts: ServerFacts,
        members: Sequence[Member],
        tls: Tls | None = None,
        login: Login | None = None,
    ) -> None:
        self.addresses = addresses
        self.tls = tls
        self.login = login
        self.facts = facts
        self.members = list(members)
        self.between: list[int] = []

    def worker_options(self, wire: str) -> dict[str, str]:
        """The options with which workers connect. Raises UnsupportedError for a protocol."""
        secured = self.tls.worker_options() if self.tls else {}
        return secured | (self.login.worker_options(wire) if self.login else {})

    @property
    def pids(self) -> list[int]:
        """The process ids of the members that cachemark started."""
        return [member.child.pid for member in self.members if member.child]

    @property
    def pid(self) -> int | None:
        """The process id of the first member that cachemark started; None if there is none."""
        return next(iter(self.pids), None)

    def final_facts(self) -> ServerFacts:
        """The facts, completed at the end of a trial."""
        return self.facts

    def stats(self) -> ServerStats:
        """The merged `stats` of all members; empty if none has statistics.

        Raises TrialError; if a member has exited, with the reason.
        """
        return merge_stats(self.member_stats())

    def member_stats(self) -> list[ServerStats]:
        """The `stats` of each member that has them. Raises TrialError as `stats` does."""
        self.check()
        return [self._stats_of(member) for member in self.members if member.control]

    def stats_about(self, what: str) -> list[ServerStats]:
        """Each member's statistics of `items` or `slabs`; empty if a member has none."""
        try:
            told = [one.control.stats_about(what) for one in self.members if one.control]
        except TrialError:
            return []
        return told if all(told) else []

    def remove_items(self) -> None:
        """Remove all items of all members. Raises TrialError."""
        for member in self.members:
            if member.control:
                member.control.remove_items()

    def use(self) -> ProcessUse | None:
        """The resource use of all members so far; None unless cachemark runs all of them."""
        uses = [process_use(member.child.pid) for member in self.members if member.child]
        known = [use for use in uses if use is not None]
        return merge_process_use(known) if known and len(known) == len(self.members) else None

    def check(self) -> None:
        """Raise TrialError if a member has exited."""
        for member in self.members:
            if member.child and member.child.exited() is not None:
                raise exited_error(member.name, member.child)

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
        except TrialError as error:
            if member.child and _has_died(member.child, error):
                raise exited_error(member.name, member.child) from error
            self.check()
            raise


def merge_process_use(uses: Sequence[ProcessUse]) -> ProcessUse:
    """The sum over several processes. The sum of the peaks is an upper bound of the real peak."""
    return ProcessUse(
        cpu_ns=sum(use.cpu_ns for use in uses),
        rss_bytes=sum(use.rss_bytes for use in uses),
        rss_peak_bytes=sum(use.rss_peak_bytes for use in uses),
        threads=sum(use.threads for use in uses),
    )


def merge_facts(
    kind: str, facts: list[ServerFacts], command: list[str] | None = None
) -> ServerFacts:
    """The facts of several servers used as one. A single server keeps its own."""
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
    """The resource use of a process so far; None if it is gone or /proc cannot be read."""
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


def wait_ready(
    kind: str,
    address: str,
    child: Child,
    timeout_s: float,
    *,
    tls: Tls | None = None,
    login: Login | None = None,
) -> tuple[Control, str]:
    """Connect as soon as the server listens; returns the connection and the server's version.

    Some servers (yrmcds) listen before they serve, and never answer an early connection. So after
    a reply timeout this tries again on a new connection. Raises TrialError.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        if child.exited() is not None:
            raise exited_error(kind, child)
        try:
            control = open_control(address, timeout_s, tls, login)
        except TrialError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise  # it listens
            if time.monotonic() > deadline:
                text = f"{kind}: not listening after {timeout_s:g} s ({error.text})"
                raise TrialError(text) from error
            time.sleep(_RETRY_S)
            continue
        control.set_timeout(min(_FIRST_ANSWER_S, timeout_s))
        try:
            version = _version(kind, control, child)
        except ReplyTimeoutError:
            if time.monotonic() > deadline:
                raise
            continue
        control.set_timeout(timeout_s)
        return control, version


def _version(kind: str, control: Control, child: Child) -> str:
    """The server's version, which shows that it is ready. On an error, close the connection."""
    try:
        version = control.version()
        # If our child has exited, another process has its port and answered.
        if child.exited() is not None:
            raise exited_error(kind, child)
    except TrialError as error:
        control.close()
        if _has_died(child, error):
            raise exited_error(kind, child) from error
        raise
    return version


def _has_died(child: Child, error: TrialError) -> bool:
    """Whether a request failed because the server has exited.

    The kernel closes the sockets of a dying process before its parent can see the exit status.
    """
    if not isinstance(error, ReplyTimeoutError):
        child.wait(_EXIT_S)
    return child.exited() is not None


def exited_error(kind: str, child: Child) -> TrialError:
    """The error for a server that has exited, with the last line of its stderr."""
    last = child.last_stderr_line()
    how = f"the server exited with status {child.exited()}"
    remedy = next((remedy for said, remedy in _REMEDIES.items() if said in last), "")
    return TrialError(f"{kind}: {how}" + (f": {last}" if last else ""), remedy)
