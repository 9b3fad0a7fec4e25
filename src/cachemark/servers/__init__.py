"""Servers: start, probe, sample, stop. One kind = one file."""

from cachemark.servers.registry import Kind, kinds, parse_spec, running
from cachemark.servers.running import ProcessUse, RunningServer
from cachemark.servers.spec import ServerSpec

__all__ = [
    "Kind",
    "ProcessUse",
    "RunningServer",
    "ServerSpec",
    "kinds",
    "parse_spec",
    "running",
]
