"""Selects the wire protocol of a cell: text, binary or meta."""

from __future__ import annotations

from cachemark.model.errors import UnsupportedWireError
from cachemark.model.experiment import Load
from cachemark.model.protocol import WIRES, Ready


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
