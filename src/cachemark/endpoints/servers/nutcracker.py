"""`nutcracker:SERVER`: the proxy twemproxy in front of a server of any kind, or of a cluster."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from cachemark.endpoints.servers import tls
from cachemark.endpoints.servers.cluster import Parse, Start, inner_of
from cachemark.endpoints.servers.port_process import (
    LaunchCommand,
    LaunchResources,
    running_program,
    which,
)
from cachemark.endpoints.servers.running import RunningServer, merge_facts
from cachemark.endpoints.servers.spec import Missing, ServerSpec
from cachemark.model.errors import UsageError
from cachemark.model.server_stats import ServerStats

PROGRAM = "nutcracker"
REMEDY = "apt-get install nutcracker"
_NOT_BEHIND_PROXY = ("none", "nutcracker")
# Other settings have nutcracker's defaults. Its default hash, fnv1a_64, leaves whole servers
# without keys if keys differ only in their last characters, as the keys of benchmarks do.
_POOL = """\
cachemark:
  listen: {address}
  hash: md5
  distribution: ketama
  preconnect: true
  servers:
"""


def parse(text: str, details: str, parse_inner: Parse) -> ServerSpec:
    """Read the server behind the proxy. Raises UsageError."""
    if not details:
        raise UsageError(f"server {text!r}: it needs a server", "write nutcracker:memcached")
    spec = parse_inner(details)
    if spec.kind in _NOT_BEHIND_PROXY:
        raise UsageError(
            f"server {text!r}: {spec.kind!r} cannot be behind a proxy", "write nutcracker:memcached"
        )
    if tls.wanted((spec.inner or spec).options):
        raise UsageError(f"server {text!r}: twemproxy has no TLS", "leave tls=yes out")
    if "auth" in (spec.inner or spec).options:
        raise UsageError(f"server {text!r}: twemproxy does not log in", "leave auth out")
    return ServerSpec(text=text, kind="nutcracker", details=details, inner=spec)


def missing(missing_inner: Missing | None = None) -> Missing | None:
    """Why the proxy, or the server behind it, cannot be started here; None if they can."""
    if which(PROGRAM):
        return missing_inner
    return Missing(reason=f"{PROGRAM} is not on this machine", remedy=REMEDY)


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float, start: Start) -> Generator[RunningServer]:
    """Start the server, then the proxy on the same CPUs. Statistics come from the server.

    Raises TrialError, UnsupportedError.
    """
    if absent := missing():
        raise absent.error()
    with start(inner_of(spec), cpus, ready_s) as behind:

        def launch(resources: LaunchResources) -> LaunchCommand:
            config = resources.folder / "nutcracker.yml"
            config.write_text(configuration(resources.address, behind.addresses), encoding="utf-8")
            words = ["-c", str(config), "-p", str(resources.folder / "pid"), "-o", "/dev/stderr"]
            words += ["-a", resources.host, "-s", str(resources.port2), "-v", "4"]
            return LaunchCommand(command=[which(PROGRAM) or PROGRAM, *words])

        with running_program("nutcracker", launch, cpus, ready_s, host=spec.listen) as proxy:
            facts = msgspec.structs.replace(
                merge_facts("nutcracker", [behind.facts], proxy.facts.command),
                version=_version(),
                address=proxy.facts.address,
            )
            own = msgspec.structs.replace(proxy.members[0], control=None)
            yield _Proxied(proxy.addresses, facts, [own, *behind.members])


class _Proxied(RunningServer):
    """Servers behind a proxy: they count the proxy's connections, not the clients'."""

    def member_stats(self) -> list[ServerStats]:
        """The `stats` of each server, without its connections. Raises TrialError."""
        told = super().member_stats()
        return [
            ServerStats({name: of[name] for name in of if name != "total_connections"})
            for of in told
        ]


def configuration(address: str, servers: list[str]) -> str:
    """The text of the configuration file: one pool of servers with equal weights. Pure."""
    lines = [f"   - {server.removeprefix('unix:')}:1\n" for server in servers]
    return _POOL.format(address=address) + "".join(lines)


def _version() -> str:
    """The proxy's version, from `This is nutcracker-0.5.0`: `version` would reach the server."""
    ended = subprocess.run(
        [which(PROGRAM) or PROGRAM, "--version"], capture_output=True, text=True, check=False
    )
    first = (ended.stderr + ended.stdout).partition("\n")[0]
    return first.rpartition("-")[2].strip()
