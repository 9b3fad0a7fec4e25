"""Which protocol a client speaks in a cell."""

from __future__ import annotations

from cachemark.model.errors import WireError
from cachemark.model.experiment import Load
from cachemark.model.protocol import WIRES, Ready


def wires(ready: Ready) -> list[str]:
    """The protocols that a client says it speaks, the library's own choice first."""
    return [each for each in ready.capabilities if each in WIRES]


def chosen_wire(load: Load, ready: Ready) -> str:
    """The protocol that is asked for, or the one that the library prefers. Raises WireError.

    A cache in the worker's own process speaks none, whatever is asked for.
    """
    spoken = wires(ready) or ["text"]
    if load.wire == "own" or spoken == ["none"]:
        return spoken[0]
    if load.wire not in spoken:
        raise WireError(f"it speaks no {load.wire}, only {' and '.join(spoken)}")
    return load.wire
