"""Makes the faults: one class for each maker, all with the same methods."""

from __future__ import annotations

import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachemark.analysis.resilience.answers import DataLoss
from cachemark.endpoints.fault_proxy import FaultProxy, fault_proxy
from cachemark.endpoints.servers.spec import LOOPBACK
from cachemark.endpoints.servers.tls import OWN_OPTIONS, missing_certificates, written_pair
from cachemark.host.temporary import temporary_folder
from cachemark.model import faults
from cachemark.runs.resilience.server import FragileServer

if TYPE_CHECKING:
    from cachemark.host.certificates import CertificatePair

_OTHER_HOST = "another-host.test"
NAME = "cachemark-server.test"  # RFC 6761 reserves .test
_NAMESPACE = ("unshare", "--map-root-user", "--mount")
_HOSTS = Path("/etc/hosts")
_TRY_S = 10.0
_OTHERS = 2
_HEIR = "127.0.0.2"
_REFUSE: faults.ProxyFault = {"kind": "refuse"}


class Injection(ABC):
    """A server with a fault that can begin and end; both return when, in ns of CLOCK_MONOTONIC.

    Clients connect to `addresses`; `loss` is set if the fault can make keys missing.
    `share` is the least part of a healthy client's calls that the server with the fault gets.
    `trusted` is the file with the certificate that clients trust, if the server speaks TLS, and
    `untrusted_calls` how many calls a server has executed that no client must trust.
    """

    share = 0.9
    trusted: Path | None = None
    untrusted_calls = 0

    def __init__(self, server: FragileServer) -> None:
        self._server = server
        self.addresses = [server.address]
        self.server_version = server.version
        self.loss: DataLoss | None = None

    @abstractmethod
    def begin(self) -> int:
        """Begin the fault. Raises TrialError."""

    @abstractmethod
    def end(self) -> int:
        """End the fault. Raises TrialError."""

    def worker_command(self, command: list[str]) -> list[str]:
        """The command that starts the worker with this command so that it can be affected."""
        return command

    def connections(self) -> int:
        """The number of connections that were opened. Raises TrialError."""
        return self._server.connections()

    def misses(self) -> int:
        """The number of reads whose answer was a miss. Raises TrialError."""
        return self._server.misses()

    def answered(self) -> int:
        """How many calls the server with the fault, or its heir, has executed.

        Raises TrialError.
        """
        return self._server.answered()

    def pids(self) -> list[int]:
        """The processes that answer clients now."""
        return self._server.pids


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
        self.loss = DataLoss(from_ns=time.monotonic_ns())
        self._server.restart()
        return time.monotonic_ns()


class _Impersonated(Injection):
    """The server speaks TLS. One with a bad certificate takes its place."""

    def __init__(self, server: FragileServer, files: TlsFiles) -> None:
        super().__init__(server)
        self._files, self.trusted = files, files.trusted
        self._answered_before = 0

    def begin(self) -> int:
        killed_ns = time.monotonic_ns()
        self._server.kill()
        self._answered_before = self._server.answered()
        self._server.restart(self._files.bad)
        return killed_ns

    def end(self) -> int:
        self._server.kill()
        self.untrusted_calls = self._server.answered() - self._answered_before
        self.loss = DataLoss(from_ns=time.monotonic_ns())
        self._server.restart(self._files.good)
        return time.monotonic_ns()


class _Moved(Injection):
    """The server has a name, which another server takes over."""

    def __init__(self, server: FragileServer, heir: FragileServer, name: PrivateName) -> None:
        super().__init__(server)
        self._heir, self._name = heir, name
        self.addresses = [f"{NAME}:{server.port}"]

    def begin(self) -> int:
        killed_ns = time.monotonic_ns()
        self._server.kill()
        return killed_ns

    def end(self) -> int:
        moved_ns = time.monotonic_ns()
        self.loss = DataLoss(from_ns=moved_ns)
        self._name.point_to(_HEIR)
        return moved_ns

    def worker_command(self, command: list[str]) -> list[str]:
        return self._name.command(command)

    def connections(self) -> int:
        return super().connections() + self._heir.connections()

    def misses(self) -> int:
        return super().misses() + self._heir.misses()

    def answered(self) -> int:
        return super().answered() + self._heir.answered()

    def pids(self) -> list[int]:
        return super().pids() + self._heir.pids


class _Proxied(Injection):
    """The proxy makes the fault; the server behind it is well."""

    def __init__(self, server: FragileServer, proxy: FaultProxy, fault: faults.ProxyFault) -> None:
        super().__init__(server)
        self._proxy, self._fault = proxy, fault
        self.addresses = [proxy.address]

    def begin(self) -> int:
        return self._proxy.apply(self._fault)

    def end(self) -> int:
        return self._proxy.apply(None)

    def connections(self) -> int:
        return self._proxy.connections()

    def pids(self) -> list[int]:
        return [self._proxy.pid, *super().pids()]


class _OneOfSeveral(Injection):
    """One of several servers has a fault; the client may use another one for its keys."""

    # A third of the keys, as evenly as libraries distribute them.
    share = 0.1

    def __init__(
        self, server: FragileServer, lost: Injection, others: Sequence[FragileServer]
    ) -> None:
        super().__init__(server)
        self._lost, self._others = lost, others
        self.addresses = lost.addresses + [other.address for other in others]

    def begin(self) -> int:
        self.loss = DataLoss(from_ns=time.monotonic_ns(), keys_move=True)
        return self._lost.begin()

    def end(self) -> int:
        return self._lost.end()

    def connections(self) -> int:
        return self._lost.connections() + sum(other.connections() for other in self._others)

    def misses(self) -> int:
        return self._lost.misses() + sum(other.misses() for other in self._others)

    def pids(self) -> list[int]:
        return [*self._lost.pids(), *(pid for other in self._others for pid in other.pids)]


def impossible(fault: faults.Fault) -> str:
    """Why this machine cannot make a fault; empty if it can."""
    match fault.make:
        case faults.MoveName():
            return private_names_missing()
        case faults.Impostor():
            return missing_certificates()
        case _:
            return ""


@contextmanager
def injection(fault: faults.Fault) -> Generator[Injection]:
    """Start the servers of a fault. Raises TrialError."""
    with ExitStack() as stack:
        if isinstance(fault.make, faults.Impostor):
            files = tls_files(stack.enter_context(temporary_folder()), fault.make.certificate)
            server = stack.enter_context(FragileServer(options=files.good))
            yield _Impersonated(server, files)
            return
        server = stack.enter_context(FragileServer())
        match fault.make:
            case faults.Freeze():
                yield _Frozen(server)
            case faults.Restart():
                yield _Restarted(server)
            case faults.MoveName():
                heir = stack.enter_context(FragileServer(_HEIR, server.port))
                name = PrivateName(stack.enter_context(temporary_folder()), LOOPBACK)
                yield _Moved(server, heir, name)
            case faults.LoseOne(keeps_data=keeps_data):
                others = [stack.enter_context(FragileServer()) for _ in range(_OTHERS)]
                lost = _proxied(stack, server, _REFUSE) if keeps_data else _Restarted(server)
                yield _OneOfSeveral(server, lost, others)
            case faults.Proxy(fault=proxy_fault):
                yield _proxied(stack, server, proxy_fault)
            case faults.Caller(delay_ms=delay_ms):
                yield _proxied(stack, server, {"kind": "delay", "delay_ms": delay_ms})


def _proxied(stack: ExitStack, server: FragileServer, fault: faults.ProxyFault) -> Injection:
    return _Proxied(server, stack.enter_context(fault_proxy(server.address)), fault)


def private_names_missing() -> str:
    """Why this machine cannot have private names; empty if it can."""
    if shutil.which(_NAMESPACE[0]) is None:
        return "unshare is not on this machine (apt-get install util-linux)"
    command = [*_NAMESPACE, "mount", "--bind", str(_HOSTS), str(_HOSTS)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TRY_S)
    return f"no mount namespace: {tried.stderr.strip()}" if tried.returncode else ""


class PrivateName:
    """A host name that only one process and its descendants know, and whose address can change.

    The process has a mount namespace, and in it an /etc/hosts of its own (a file in `folder`). A
    user namespace makes this possible without privilege.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self._file = folder / "hosts"
        self._file.write_text(self._hosts(address))

    def command(self, command: list[str]) -> list[str]:
        """A command that runs another one, which then knows the name."""
        mount = f'mount --bind "$0" {_HOSTS} && exec "$@"'
        return [*_NAMESPACE, "sh", "-c", mount, str(self._file), *command]

    def point_to(self, address: str) -> None:
        """Let the name resolve to another address from now on."""
        # In place, because the mount is of this file; in one write, which no reader sees a part of.
        text = self._hosts(address).encode()
        with self._file.open("r+b", buffering=0) as file:
            file.write(text)
            file.truncate(len(text))

    @staticmethod
    def _hosts(address: str) -> str:
        # The name is last, and every line ends: a resolver never reads a part of an old line.
        return f"{_HOSTS.read_text().rstrip()}\n{address} {NAME}\n"


class TlsFiles(NamedTuple):
    """The certificate that clients trust, and the options of both servers for memcached."""

    trusted: Path
    good: dict[str, str]
    bad: dict[str, str]


def tls_files(folder: Path, bad: faults.BadCertificate) -> TlsFiles:
    """Make the certificates of a server and of its impostor in a folder."""
    from cachemark.host.certificates import Authority  # noqa: PLC0415  # needs an extra package

    authority = Authority("cachemark")
    match bad:
        case "untrusted":
            pair = Authority("a stranger").pair(LOOPBACK)
        case "other-host":
            pair = authority.pair(_OTHER_HOST)
        case "expired":
            pair = authority.pair(LOOPBACK, ends_in=-timedelta(days=1))
    trusted = folder / "trusted.pem"
    trusted.write_bytes(authority.pem)
    good = _options(folder, "good", authority.pair(LOOPBACK))
    return TlsFiles(trusted, good, _options(folder, "bad", pair))


def _options(folder: Path, name: str, pair: CertificatePair) -> dict[str, str]:
    return dict(zip(OWN_OPTIONS, written_pair(folder, name, pair), strict=True))
