"""Servers: how they are named, started, asked for statistics, and stopped. One kind = one file."""

from cachemark.endpoints.servers.quirks import options_for
from cachemark.endpoints.servers.registry import (
    MemoryLimit,
    io_mode,
    kinds,
    listening_on,
    memory_limit,
    missing,
    parse_spec,
    readiness,
    running,
    running_unencrypted,
    with_memory,
    with_small_memory,
)
from cachemark.endpoints.servers.remote import used_elsewhere
from cachemark.endpoints.servers.running import ProcessUse, RunningServer
from cachemark.endpoints.servers.spec import ServerSpec
