"""Compares the needs of a trial with the claims in a worker's `ready`. Pure.

A worker without the capability could silently play something else, such as every key on the first
of two servers. So cachemark refuses the trial before it starts.
"""

from collections.abc import Callable, Collection

import msgspec

from cachemark.model.errors import UnsupportedWireError
from cachemark.model.experiment import Load
from cachemark.model.protocol import WIRES, Prepare, Ready


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of a trial on a worker: a request, the kinds on its tape, and its load."""

    prepare: Prepare
    kinds: Collection[str] = ()
    open_loop: bool = False
    think: bool = False
    slices: bool = False


_Needed = Callable[[Demand], bool]


def _logs_in(demand: Demand, *, by_sasl: bool) -> bool:
    request = demand.prepare
    return "auth" in request.options and (request.wire == "binary") == by_sasl


# A capability, the test whether a trial needs it, and its name in words.
_TABLE: tuple[tuple[str, _Needed, str], ...] = (
    ("threads", lambda d: d.prepare.threads > 1, "several callers at once"),
    ("pipeline", lambda d: d.prepare.depth > 1, "a depth above 1"),
    (
        "refill_all",
        lambda d: d.prepare.depth > 1 and d.prepare.refill == "all",
        "waiting for all outstanding operations",
    ),
    ("shared", lambda d: d.prepare.connections < d.prepare.threads, "connections that are shared"),
    ("cluster", lambda d: len(d.prepare.servers) > 1, "several servers"),
    ("unix", lambda d: any(s.startswith("unix:") for s in d.prepare.servers), "a Unix socket"),
    ("tls", lambda d: "tls" in d.prepare.options, "TLS"),
    ("login_sasl", lambda d: _logs_in(d, by_sasl=True), "a login by SASL (wire binary)"),
    ("login_text", lambda d: _logs_in(d, by_sasl=False), "a login in the text protocol"),
    ("open_loop", lambda d: d.open_loop, "an open loop"),
    ("think", lambda d: d.think, "time to think"),
    ("slices", lambda d: d.slices, "short slices in turn with other clients"),
)


def unclaimed(demand: Demand, ready: Ready) -> str:
    """The first need of the trial that the worker does not claim, in words; empty if none."""
    claimed = set(ready.capabilities)
    for name, needed, words in _TABLE:
        if needed(demand) and name not in claimed:
            return f"{ready.client} does not support {words} (`{name}`)"
    lacking = sorted(set(demand.kinds) - claimed)
    return f"{ready.client} has no {lacking[0]}" if lacking else ""


def supported_wires(ready: Ready) -> list[str]:
    """The wire protocols among a client's capabilities, the library's default first."""
    return [each for each in ready.capabilities if each in WIRES]


def select_wire(load: Load, ready: Ready) -> str:
    """The wire protocol that the load asks for, or the library's default.

    Caches in the worker's own process always have `none`. Raises UnsupportedWireError.
    """
    supported = supported_wires(ready) or ["text"]
    if load.wire == "own" or supported == ["none"]:
        return supported[0]
    if load.wire not in supported:
        raise UnsupportedWireError(f"it speaks no {load.wire}, only {' and '.join(supported)}")
    return load.wire
