"""How much longer a server takes to start and to end than one that is ready at once. Pure."""

from __future__ import annotations

from cachemark.endpoints.servers import ServerSpec, parse_spec
from cachemark.model.plan import NO_SERVER

# Servers in a JVM. The costs of workers contain the start of a server in C or Rust.
_START_S = {"infinispan": 3.0, "jmemcached": 0.5, "quickcached": 0.7}


def server_start_s(text: str) -> float:
    """The time for a server, or for all of a cluster, in seconds."""
    return 0.0 if text == NO_SERVER else _of(parse_spec(text))


def _of(spec: ServerSpec) -> float:
    if spec.inner is not None:
        return spec.count * _of(spec.inner)
    return _START_S.get(spec.kind, 0.0)
