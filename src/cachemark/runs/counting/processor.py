"""CPU time, switches and page faults of a client, in a pass that nothing slows down."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer
from cachemark.host.thread_usage import watched
from cachemark.model.counts import PROCESSOR_FIGURES, Counts
from cachemark.model.protocol_results import attempts_of
from cachemark.runs.counting.player import CountingPlace, CountingPlayer, Work, playing

_FIRST_OPS = 100
# A runtime compiles while it warms up: until an operation costs nearly as much as before.
_WARM_UP_NS = 100_000_000
_WARM_UPS = 20
_STEADY = 0.9
_LEAST_OPS, _MOST_OPS = 10, 400_000
# The kernel samples whether a thread is in its own code or in the kernel, 250 times a second. So
# the long play is much longer than the short one, which shows what a play costs beside operations.
_LONG, _SHORT = 10, 1
# A thread that waits more seldom has no part in each operation.
_PART_OF_OPERATIONS = 0.5
# Threads that came and went between two looks are not seen.
_LEAST_SEEN = 0.9

# For clients without a `null` beside them.
NO_LOOP = Counts(**dict.fromkeys(PROCESSOR_FIGURES, 0.0))


class _Play(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over all operations of a play; switches are None if not all threads were seen."""

    ops: int
    user_ns: int
    system_ns: int
    waiting_ns: int
    faults: int
    switches: int | None
    preemptions: int | None
    waiting_threads: int


def count_processor(
    client: ClientSpec, works: Sequence[Work], server: RunningServer, place: CountingPlace
) -> dict[str, Counts]:
    """CPU time, switches and page faults of one operation of each work, by its kind.

    The loop's own are among them. Raises TrialError, UnsupportedError.
    """
    with playing(client, place.worker_cpus) as player:
        return {work.kind: _count(player, work, server) for work in works}


def _count(player: CountingPlayer, work: Work, server: RunningServer) -> Counts:
    player.prepare(work, server)
    ops = _warmed_up(player)
    short, long = _play(player, _SHORT * ops), _play(player, _LONG * ops)

    def of(name: str) -> float | None:
        before, after = getattr(short, name), getattr(long, name)
        more = None if before is None or after is None else after - before
        return None if more is None else more / (long.ops - short.ops)

    def us(name: str) -> float | None:
        ns = of(name)
        return None if ns is None else ns / 1e3

    return Counts(
        user_us=us("user_ns"),
        system_us=us("system_ns"),
        waiting_us=us("waiting_ns"),
        switches=of("switches"),
        preemptions=of("preemptions"),
        waiting_threads=None if long.switches is None else long.waiting_threads,
        faults=of("faults"),
    )


def _warmed_up(player: CountingPlayer) -> int:
    """Play until the runtime is warm; how many operations a tenth of a second has."""
    ops, before_ns = _FIRST_OPS, 0.0
    for _ in range(_WARM_UPS):
        done = player.play(ops)
        cost_ns = (done.cpu_user_ns + done.cpu_system_ns) / ops
        if done.elapsed_ns > _WARM_UP_NS / 2 and cost_ns >= _STEADY * before_ns:
            break
        before_ns = cost_ns
        fitting = ops * _WARM_UP_NS // max(1, done.elapsed_ns)
        ops = min(max(fitting, _LEAST_OPS), 10 * ops, _MOST_OPS)
    return ops


def _play(player: CountingPlayer, ops: int) -> _Play:
    (worker,) = player.fleet.workers
    with watched(worker.pid) as usage:
        done = player.play(ops)
    threads = usage.threads()
    played = attempts_of(done.operations)
    cpu_ns = done.cpu_user_ns + done.cpu_system_ns
    queued_ns = sum(each.queued_ns for each in threads)
    seen = sum(each.run_ns for each in threads) >= _LEAST_SEEN * cpu_ns
    return _Play(
        ops=played,
        user_ns=done.cpu_user_ns,
        system_ns=done.cpu_system_ns,
        waiting_ns=max(0, done.elapsed_ns - cpu_ns - queued_ns),
        faults=usage.faults,
        switches=sum(each.switches for each in threads) if seen else None,
        preemptions=sum(each.preemptions for each in threads) if seen else None,
        waiting_threads=sum(each.switches >= played * _PART_OF_OPERATIONS for each in threads),
    )


def without_loop(of: Counts, loop: Counts) -> Counts:
    """The client's counts without those of the loop that calls it."""
    own = {
        name: None if value is None or others is None else value - others
        for name in PROCESSOR_FIGURES
        for value, others in [(getattr(of, name), getattr(loop, name))]
    }
    return msgspec.structs.replace(of, **own)
