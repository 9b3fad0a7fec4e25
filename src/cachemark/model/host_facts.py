"""Facts about a machine at the begin of a run; every run stores them."""

from __future__ import annotations

import msgspec


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at the time of a run. A field that cannot be read is empty."""

    name: str
    cpu_model: str
    cpus: int
    usable_cpus: list[int]
    hypervisor: bool
    kernel: str
    system: str
    memory_bytes: int
    governor: str
    clocksource: str
    load_1min: float
    python: str
    cachemark: str
    tools: dict[str, str]
    cores: list[list[int]] = []
    turbo: str = ""
    mitigations: dict[str, str] = {}
    swap_used_bytes: int = 0
    engine: str = ""
