"""Allocations of clients in C and Rust, under an allocator that counts."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer
from cachemark.model.counts import Counts
from cachemark.runs.counting.player import CountingPlace, Work, playing
from cachemark.runs.counting.processor import count_memory

# On a busy machine a worker reports progress more often; over 1,000 operations that is little.
_OPS = 1000


def count_allocations(
    client: ClientSpec, works: Sequence[Work], server: RunningServer, place: CountingPlace
) -> dict[str, Counts]:
    """Allocations, their bytes, and copies for one operation of each work, by its kind.

    Empty if the client's language has no such allocator. Raises TrialError, UnsupportedError.
    """
    allocator, counts = client.client.counting_allocator, place.folder / "allocations"
    if not allocator or not Path(allocator).exists():
        return {}
    counts.write_bytes(bytes(16))
    with playing(client, place.worker_cpus, partial(_under, allocator, counts)) as player:
        player.allocations = counts
        return {work.kind: count_memory(player, work, server, _OPS) for work in works}


def _under(allocator: str, counts: Path, command: list[str]) -> list[str]:
    return ["env", f"LD_PRELOAD={allocator}", f"CACHEMARK_ALLOCATIONS={counts}", *command]
