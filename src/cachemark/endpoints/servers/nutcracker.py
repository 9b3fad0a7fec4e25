"""`nutcracker:SERVER`: twemproxy before a server of any kind, or before a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from cachemark.endpoints.servers.cluster import Parse, Start, inner_of
from cachemark.endpoints.servers.port_process import Launch, Place, running_program, which
from cachemark.endpoints.servers.running import RunningServer, together
from cachemark.endpoints.servers.spec import Missing, ServerSpec
from cachemark.model.errors import UsageError

PROGRAM = "nutcracker"
REMEDY = "apt-get install nutcracker"
_UNFIT = ("none", "nutcracker")
# What is left out has its own default. Its usual hash, fnv1a_64, leaves whole servers without keys
# where keys differ in their last letters only, as those of benchmarks do.
_POOL = """\
cachemark:
  listen: {address}
  hash: md5
  distribution: ketama
  preconnect: true
  servers:
"""


def parse(text: str, details: str, parse_inner: Parse) -> ServerSpec:
    """Read the server that it stands before. Raises UsageError."""
    if not details:
        raise UsageError(f"server {text!r}: before which server?", "write nutcracker:memcached")
    spec = parse_inner(details)
    if spec.kind in _UNFIT:
        raise UsageError(
            f"server {text!r}: {spec.kind!r} cannot be behind a proxy", "write nutcracker:memcached"
        )
    return ServerSpec(text=text, kind="nutcracker", details=details, inner=spec)


def missing(spec: ServerSpec, missing_inner: Missing | None) -> Missing | None:
    """Why it cannot be started here: for itself, or for what is behind it."""
    del spec
    if which(PROGRAM):
        return missing_inner
    return Missing(reason=f"{PROGRAM} is not on this machine", remedy=REMEDY)


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float, start: Start) -> Generator[RunningServer]:
    """Start the server, then the proxy on the same CPUs; statistics are the server's.

    Raises TrialError, UnsupportedError.
    """
    if absent := missing(spec, None):
        raise absent.error()
    with start(inner_of(spec), cpus, ready_s) as behind:

        def launch(place: Place) -> Launch:
            config = place.folder / "nutcracker.yml"
            config.write_text(configuration(place.address, behind.addresses), encoding="utf-8")
            words = ["-c", str(config), "-p", str(place.folder / "pid"), "-o", "/dev/stderr"]
            words += ["-a", "127.0.0.1", "-s", str(place.port2), "-v", "4"]
            return Launch(command=[which(PROGRAM) or PROGRAM, *words])

        with running_program("nutcracker", launch, cpus, ready_s) as proxy:
            facts = msgspec.structs.replace(
                together("nutcracker", [behind.facts], proxy.facts.command),
                version=_version(),
                address=proxy.facts.address,
            )
            own = msgspec.structs.replace(proxy.members[0], control=None)
            yield RunningServer(proxy.addresses, facts, [own, *behind.members])


def configuration(address: str, servers: list[str]) -> str:
    """Its configuration file: a pool of the servers, all of one weight. Pure."""
    lines = [f"   - {server.removeprefix('unix:')}:1\n" for server in servers]
    return _POOL.format(address=address) + "".join(lines)


def _version() -> str:
    """What it calls itself, `This is nutcracker-0.5.0`: its reply to `version` is the server's."""
    ended = subprocess.run(
        [which(PROGRAM) or PROGRAM, "--version"], capture_output=True, text=True, check=False
    )
    first = (ended.stderr + ended.stdout).partition("\n")[0]
    return first.rpartition("-")[2].strip()
