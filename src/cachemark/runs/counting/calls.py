"""System calls of one operation, by kind: a client's, or its server's."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer
from cachemark.host.system_calls import SystemCalls, attached, calls_between, traced
from cachemark.model.counts import CALLS, Counts
from cachemark.model.protocol_results import attempts_of
from cachemark.runs.counting.player import CountingPlace, CountingPlayer, Work, playing

_WARM_UP_OPS, _OPS = 20, 300
# A thread that makes fewer calls has no part in each operation.
_PART_OF_OPERATIONS = 0.5


def count_calls(
    client: ClientSpec,
    works: Sequence[Work],
    server: RunningServer,
    place: CountingPlace,
    *,
    of_server: bool = False,
) -> dict[str, Counts]:
    """The system calls of a client for one operation of each work, by its kind.

    With `of_server`, they are the server's. Raises TrialError, UnsupportedError.
    """
    log = place.folder / "strace"
    wrapped = list if of_server else partial(traced, log=log)
    tracing = attached(server.pids, log) if of_server else nullcontext()
    try:
        with playing(client, place.worker_cpus, wrapped) as player, tracing:
            return {work.kind: _count(player, work, server, log) for work in works}
    finally:
        log.unlink(missing_ok=True)


def _count(player: CountingPlayer, work: Work, server: RunningServer, log: Path) -> Counts:
    player.prepare(work, server)
    player.play(_WARM_UP_OPS)
    short_ops, short = _calls(player, _OPS, log)
    long_ops, long = _calls(player, 2 * _OPS, log)
    ops = long_ops - short_ops
    return Counts(
        **{name: (long.counts[name] - short.counts[name]) / ops for name in CALLS},
        threads=sum(calls >= long_ops * _PART_OF_OPERATIONS for calls in long.by_thread.values()),
    )


def _calls(player: CountingPlayer, ops: int, log: Path) -> tuple[int, SystemCalls]:
    """Play `ops` operations; returns the number that was played, and their system calls."""
    began_s = time.time()
    done = player.play(ops)
    return attempts_of(done.operations), calls_between(log, began_s, time.time())
