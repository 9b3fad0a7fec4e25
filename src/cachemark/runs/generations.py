"""Which trials play a tape with generations, which show lost and stale writes (docs/tape.md)."""

from cachemark.analysis.unseen_writes import PROXY, no_generations
from cachemark.endpoints.servers import ServerSpec
from cachemark.model.experiment import Load
from cachemark.runs.tapes import Generations


def generations_of(
    load: Load, server: ServerSpec, *, hosts: int, in_rounds: bool
) -> Generations | None:
    """The generations of a trial that `hosts` hosts of clients play; None if it has none.

    In rounds the arms share a `remote` server, and write the keys by the same tape.
    """
    if no_generations(load) or server.kind == "none":
        return None
    if server.kind == PROXY and load.depth > 1:
        return None
    lanes = load.processes * load.threads * hosts
    return Generations(lanes=lanes, shared_server=in_rounds and server.innermost.kind == "remote")
