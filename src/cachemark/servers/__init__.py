"""Servers: start, probe, sample, stop. One kind = one file."""

from cachemark.servers.quirks import options_for
from cachemark.servers.registry import Kind, io_mode, kinds, missing, parse_spec, running, small
from cachemark.servers.running import ProcessUse, RunningServer
from cachemark.servers.spec import Missing, ServerSpec

__all__ = [
    "Kind",
    "Missing",
    "ProcessUse",
    "RunningServer",
    "ServerSpec",
    "io_mode",
    "kinds",
    "missing",
    "options_for",
    "parse_spec",
    "running",
    "small",
]
