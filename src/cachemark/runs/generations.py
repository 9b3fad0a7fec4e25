"""Which trials play a tape with generations, which show lost and stale writes (docs/tape.md)."""

from __future__ import annotations

from cachemark.endpoints.servers import ServerSpec
from cachemark.model.experiment import Load


def generation_arguments(load: Load, server: ServerSpec, *, in_rounds: bool) -> list[str]:
    """The arguments of `tape write` for the generations of a trial; empty if it has none.

    Each caller has to play one operation after the other. Nothing else may write the keys: not the
    generators of a load, and the arms of rounds only by the same tape, if they share a remote
    server. A cluster or a proxy may answer from another member after a failure that no caller sees.
    """
    in_turn = load.schedule == "closed" and load.think is None and load.depth == 1
    own = load.connections in (None, load.threads) and load.measure is None
    if not in_turn or not own or server.inner is not None or server.kind == "none":
        return []
    shared = ["--shared-server"] if in_rounds and server.kind == "remote" else []
    return ["--generations", str(load.processes * load.threads), *shared]
