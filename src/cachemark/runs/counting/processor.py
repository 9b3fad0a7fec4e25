"""CPU time, switches, page faults and memory of a client, in a pass that nothing slows down."""

from collections.abc import Sequence
from operator import sub
from pathlib import Path
from typing import NamedTuple

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer
from cachemark.host.files import read
from cachemark.host.process import cpu_ns
from cachemark.host.thread_usage import watched
from cachemark.model.counts import LOOP_FIGURES, Counts
from cachemark.model.protocol_results import HeapWork, attempts_of
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
# A thread that starts and ends between two readings is not seen.
_LEAST_SEEN = 0.9
# On a busy machine a worker reports progress more often; over 1,000 operations that is little.
_ALLOCATING_OPS = 1000


class CountedPlay(HeapWork, frozen=True, kw_only=True):
    """Sums over all operations of a play; switches are None if not all threads were seen.

    `value_bytes` were read or written.
    """

    ops: int
    user_ns: int
    system_ns: int
    waiting_ns: int
    faults: float | None
    switches: int | None
    preemptions: int | None
    waiting_threads: float
    value_bytes: int


class Plays(NamedTuple):
    """A short play and a long one."""

    short: CountedPlay
    long: CountedPlay

    def of(self, name: str, each: float = 1.0) -> float | None:
        """A figure of one operation, divided by `each`; None if it was not counted."""
        before, after = getattr(self.short, name), getattr(self.long, name)
        if before is None or after is None:
            return None
        return (after - before) / (self.long.ops - self.short.ops) / each


def count_processor(
    client: ClientSpec,
    works: Sequence[Work],
    server: RunningServer,
    place: CountingPlace,
    *,
    of_server: bool = False,
) -> dict[str, Counts]:
    """CPU time, switches, page faults and memory of one operation of each work, by its kind.

    The loop's own are among them. With `of_server`, the server's, but for memory. Raises
    TrialError, UnsupportedError.
    """
    with playing(client, place.worker_cpus) as player:
        pid = server.pids[0] if of_server else None
        return {work.kind: _count(player, work, server, pid) for work in works}


def _count(player: CountingPlayer, work: Work, server: RunningServer, pid: int | None) -> Counts:
    player.prepare(work, server)
    ops = warmed_up(player)
    plays = Plays(_play(player, _SHORT * ops, pid), _play(player, _LONG * ops, pid))
    return msgspec.structs.replace(
        _memory(player, work, server, plays, ops),
        user_us=plays.of("user_ns", 1e3),
        system_us=plays.of("system_ns", 1e3),
        waiting_us=plays.of("waiting_ns", 1e3),
        switches=plays.of("switches"),
        preemptions=plays.of("preemptions"),
        waiting_threads=None if plays.long.switches is None else plays.long.waiting_threads,
        faults=None if plays.long.faults is None else plays.long.faults / plays.long.ops,
    )


def count_allocations(
    client: ClientSpec, works: Sequence[Work], server: RunningServer, place: CountingPlace
) -> dict[str, Counts]:
    """The memory of one operation of each work, by its kind, under an allocator that counts.

    Empty if the client's language, such as C or Rust, has no such allocator. Raises TrialError,
    UnsupportedError.
    """
    allocator, counts = client.client.counting_allocator, place.folder / "allocations"
    if not allocator or not Path(allocator).exists():
        return {}
    counts.write_bytes(bytes(16))
    variables = {"LD_PRELOAD": allocator, "CACHEMARK_ALLOCATIONS": counts}
    with playing(client, place.worker_cpus, variables=variables, allocations=counts) as player:
        return {work.kind: _count_memory(player, work, server) for work in works}


def _count_memory(player: CountingPlayer, work: Work, server: RunningServer) -> Counts:
    player.prepare(work, server)
    player.play(_ALLOCATING_OPS)
    plays = Plays(_play(player, _ALLOCATING_OPS), _play(player, 2 * _ALLOCATING_OPS))
    return _memory(player, work, server, plays, _ALLOCATING_OPS)


def _memory(
    player: CountingPlayer, work: Work, server: RunningServer, plays: Plays, ops: int
) -> Counts:
    longer = None
    if work.longer is not None and plays.long.allocated_bytes is not None:
        player.prepare(work.longer, server)
        longer = Plays(_play(player, max(1, ops // 10)), _play(player, ops))
    copies, value_bytes = copies_of(plays, longer), plays.of("value_bytes")
    priced, priced_ns = plays.long.priced, plays.long.priced_ns or 0
    return Counts(
        allocation_us=priced_ns / priced / 1e3 if priced else None,
        allocations=plays.of("allocations"),
        allocated_bytes=plays.of("allocated_bytes"),
        copies=copies,
        copied_bytes=None if copies is None or value_bytes is None else copies * value_bytes,
        collections=plays.of("collections", 1e-3),
        collection_us=plays.of("collection_ns", 1e3),
    )


def copies_of(plays: Plays, longer: Plays | None) -> float | None:
    """The bytes allocated for each byte by which values are longer; None: not counted."""
    names = ("allocated_bytes", "value_bytes")
    pairs = [(longer.of(name), plays.of(name)) for name in names] if longer else []
    grown = [a - b for a, b in pairs if a is not None and b is not None]
    return grown[0] / grown[1] if len(grown) == 2 and grown[1] else None


def warmed_up(player: CountingPlayer) -> int:
    """Play until the runtime is warm; returns the operations of a tenth of a second."""
    ops, before_ns = _FIRST_OPS, 0.0
    for _ in range(_WARM_UPS):
        done = player.play(ops)
        cost_ns = (done.cpu_user_ns + done.cpu_system_ns) / ops
        fitting = max(ops * _WARM_UP_NS // max(1, done.elapsed_ns), _LEAST_OPS)
        if done.elapsed_ns > _WARM_UP_NS / 2 and cost_ns >= _STEADY * before_ns:
            return min(ops, fitting)
        before_ns = cost_ns
        ops = min(fitting, 10 * ops, _MOST_OPS)
    return ops


def _play(player: CountingPlayer, ops: int, server_pid: int | None = None) -> CountedPlay:
    (worker,) = player.fleet.workers
    before = _server_time(server_pid) if server_pid else ()
    with watched(server_pid or worker.pid) as usage:
        done = player.play(ops, heap=not server_pid)
    threads = usage.threads()
    played = attempts_of(done.operations)
    user_ns, used_ns = done.cpu_user_ns, done.cpu_user_ns + done.cpu_system_ns
    if server_pid:
        used_ns, *ticks = map(sub, _server_time(server_pid), before)
        user_ns = used_ns * ticks[0] // max(1, sum(ticks))
    queued_ns = sum(each.queued_ns for each in threads)
    seen = sum(each.run_ns for each in threads) >= _LEAST_SEEN * used_ns
    return CountedPlay(
        **msgspec.structs.asdict(done.heap or HeapWork()),
        ops=played,
        user_ns=user_ns,
        system_ns=used_ns - user_ns,
        waiting_ns=max(0, done.elapsed_ns - used_ns - queued_ns),
        faults=usage.faults_of_last(done.elapsed_ns),
        switches=sum(each.switches for each in threads) if seen else None,
        preemptions=sum(each.preemptions for each in threads) if seen else None,
        waiting_threads=sum(min(1.0, each.switches / played) for each in threads),
        value_bytes=sum(each.value_bytes for each in done.operations.values()),
    )


def _server_time(pid: int) -> tuple[int, int, int]:
    """CPU time of a server in ns, and in ticks that in its own code and that in the kernel."""
    stat = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    user, system = map(int, stat[11:13] or (0, 0))
    return cpu_ns(pid) or 0, user, system


def without_loop(of: Counts, loop: Counts | None) -> Counts:
    """The client's counts without the loop that calls it; all of them if it has no `null`."""
    if loop is None:
        return of
    own = {
        name: None if value is None or others is None else value - others
        for name in LOOP_FIGURES
        for value, others in [(getattr(of, name), getattr(loop, name))]
    }
    return msgspec.structs.replace(of, **own)
