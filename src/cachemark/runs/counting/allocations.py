"""Allocations of clients in C and Rust, under an allocator that counts."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from struct import unpack

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer
from cachemark.model.counts import Counts
from cachemark.model.protocol_results import attempts_of
from cachemark.runs.counting.player import CountingPlace, CountingPlayer, Work, playing

# On a busy machine a worker reports progress more often; over 1,000 operations that is little.
_OPS = 1000


def count_allocations(
    client: ClientSpec, works: Sequence[Work], server: RunningServer, place: CountingPlace
) -> dict[str, Counts]:
    """Allocations and their bytes for one operation of each work, by its kind.

    Empty if the client's language has no such allocator. Raises TrialError, UnsupportedError.
    """
    allocator, counts = client.client.counting_allocator, place.folder / "allocations"
    if not allocator or not Path(allocator).exists():
        return {}
    counts.write_bytes(bytes(16))
    with playing(client, place.worker_cpus, partial(_under, allocator, counts)) as player:
        return {work.kind: _count(player, work, server, counts) for work in works}


def _under(allocator: str, counts: Path, command: list[str]) -> list[str]:
    return ["env", f"LD_PRELOAD={allocator}", f"CACHEMARK_ALLOCATIONS={counts}", *command]


def _count(player: CountingPlayer, work: Work, server: RunningServer, counts: Path) -> Counts:
    player.prepare(work, server)
    player.play(_OPS)
    short, long = _play(player, _OPS, counts), _play(player, 2 * _OPS, counts)
    ops, allocations, size = (more - fewer for fewer, more in zip(short, long, strict=True))
    return Counts(allocations=allocations / ops, allocated_bytes=size / ops)


def _play(player: CountingPlayer, ops: int, counts: Path) -> tuple[int, int, int]:
    """Play `ops` operations; the number played, their allocations and bytes."""
    before = unpack("@QQ", counts.read_bytes())
    done = player.play(ops)
    after = unpack("@QQ", counts.read_bytes())
    return attempts_of(done.operations), after[0] - before[0], after[1] - before[1]
