"""`distant:0.5ms:SERVER`: a server behind the engine's proxy, which holds bytes like a network."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from msgspec.structs import replace

from cachemark.endpoints.servers.cluster import Parse, Start, inner_of
from cachemark.endpoints.servers.engine_process import EngineProcess
from cachemark.endpoints.servers.running import RunningServer, exited_error, merge_facts
from cachemark.endpoints.servers.spec import ServerSpec
from cachemark.host import process
from cachemark.model.address import parse_host_port
from cachemark.model.distance import Distance
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.outcome import ServerFacts
from cachemark.model.units import parse_ns

_NAME = "distance"
# The first reply of a connection takes two round trips: the checks before a run wait for 2 s.
_LEAST_NS, _MOST_NS = 10**3, 800 * 10**6


class _Listening(Distance, frozen=True, kw_only=True):
    listening: list[str]


def parse(text: str, details: str, parse_inner: Parse) -> ServerSpec:
    """Read the round trip and the server behind it. Raises UsageError."""
    time, _, inner = details.partition(":")
    if not inner:
        raise UsageError(f"server {text!r}: no time or no server", "distant:0.5ms:memcached")
    if not _LEAST_NS <= parse_ns(time, f"server {text!r}") <= _MOST_NS:
        raise UsageError(f"server {text!r}: {time} is no distance", "write 1us to 800ms")
    spec = parse_inner(inner)
    if spec.kind in ("none", "distant"):
        raise UsageError(f"server {text!r}: {spec.kind!r} has no distance", "leave distant: out")
    if spec.innermost.options.get("unix") == "yes" or "unix:" in spec.innermost.details:
        raise UsageError(f"server {text!r}: a Unix socket has no distance", "leave distant: out")
    return ServerSpec(text=text, kind="distant", details=time, inner=spec)


class _DistantServer(RunningServer):
    """A server behind the proxy. CPU time and memory belong to the server alone."""

    def __init__(self, behind: RunningServer, proxy: EngineProcess, command: list[str]) -> None:
        self._proxy, said = proxy, proxy.answer(_Listening)
        self._distance = Distance(round_trip_ns=said.round_trip_ns, floor_ns=said.floor_ns)
        facts = merge_facts("distant", [behind.facts], command)
        facts = replace(facts, address=",".join(said.listening), distance=self._distance)
        super().__init__(said.listening, facts, behind.members, behind.tls, behind.login)
        self.between = [proxy.pid]

    def check(self) -> None:
        """Raise TrialError if a member or the proxy has exited."""
        if self._proxy.child.exited() is not None:
            raise exited_error(_NAME, self._proxy.child)
        super().check()

    def final_facts(self) -> ServerFacts:
        """The facts, with the times that the proxy has measured."""
        try:
            told = self._proxy.ask(b"", Distance)
        except TrialError:
            return self.facts
        known = self._distance
        told = replace(told, round_trip_ns=known.round_trip_ns, floor_ns=known.floor_ns)
        return replace(self.facts, distance=told)


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float, start: Start) -> Generator[RunningServer]:
    """Start the server, then the proxy on the same CPUs. Raises TrialError, UnsupportedError."""
    with start(inner_of(spec), cpus, ready_s) as behind:
        command = [process.binary_path(), "distance", "--round-trip", spec.details]
        command += ["--listen", spec.listen, *(f"--upstream={one}" for one in behind.addresses)]
        with process.start(
            command, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            server = _DistantServer(behind, EngineProcess(_NAME, child), command)
            if server.tls and not server.tls.name and spec.innermost.kind == "remote":
                # The certificate names the server, and not the proxy.
                name = parse_host_port(behind.addresses[0])[0]
                server.tls = replace(server.tls, name=name)
            yield server
