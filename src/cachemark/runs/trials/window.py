"""The measured window of a trial: play it, and read server and machine before, within and after."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from cachemark.analysis.verdict import commands_per_server
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.servers import ProcessUse, RunningServer
from cachemark.host.noise import NoiseMonitor
from cachemark.model.merging import merge_kinds
from cachemark.model.outcome import CommandCount, HostNoise, Observed, Sample, ServerUse
from cachemark.model.protocol import Done, RunRequest
from cachemark.model.rounds import Rounds
from cachemark.model.server_stats import ServerLoad, ServerStats, SlabClass
from cachemark.runs.trials.sampler import Sampler

# Readings of the server's counters in a window, and how close they may come.
_TICKS = 25
_SHORTEST_TICK_S = 0.1


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A window that was played to its end, and the readings around and within it.

    `before` and `after` hold the `stats` of each server that has them. `rounds` has the slices of a
    window that was played in turns with others. `generated` is what load generators did beside.
    `observed` and `generated_observed` are what was seen of both from outside. `slab_classes` has
    the size classes of servers that evicted items.
    """

    done: Done
    observed: Observed | None = None
    generated: Done | None = None
    generated_observed: Observed | None = None
    began_unix_ns: int
    before: list[ServerStats]
    after: list[ServerStats]
    use: ServerUse | None
    command_counts: list[CommandCount]
    noise: HostNoise
    rounds: Rounds | None = None
    slab_classes: list[SlabClass] = []


def play_window(
    server: RunningServer,
    fleet: Fleet,
    request: RunRequest,
    watch: RunMonitor,
    *,
    awake_pid: int | None,
    keep: Callable[[list[Sample]], None],
) -> Window:
    """Play the window. `keep` gets the samples, also of a window that breaks off.

    Raises TrialError when the server or a worker fails.
    """
    noise = NoiseMonitor()
    before, use = server.member_stats(), server.use()
    generators = fleet.generators
    sides = [fleet, generators] if generators else [fleet]
    workers = [worker.pid for side in sides for worker in side.workers]
    noise.start(workers, server.pids + server.between, awake_pid)
    with noise.watching(), Sampler(server, tick_s=tick_s(request), noise=noise) as sampler:
        watched = msgspec.structs.replace(
            watch, progress=_both(sampler.note_progress, watch.progress)
        )
        try:
            done = fleet.run(request, watched)
        finally:
            keep(sampler.samples)
    after, used = server.member_stats(), server.use()
    return Window(
        done=done,
        observed=fleet.observed,
        generated=fleet.generated,
        generated_observed=generators.observed if generators else None,
        began_unix_ns=fleet.began_unix_ns,
        noise=noise.stop(),
        use=use_between(use, used),
        before=before,
        after=after,
        slab_classes=slab_classes(server, before, after),
        command_counts=counts_since(
            fleet.began_unix_ns - sampler.began_unix_ns, sampler.command_counts
        ),
    )


def tick_s(request: RunRequest) -> float | None:
    """The interval for readings of the server's counters; none if the window's length is unknown.

    Each reading delays an operation by some µs: ten a second are far too few to show in p99.9.
    """
    if request.duration_ms is None:
        return None
    return min(1.0, max(_SHORTEST_TICK_S, request.duration_ms / 1e3 / _TICKS))


def use_between(before: ProcessUse | None, after: ProcessUse | None) -> ServerUse | None:
    """A server's use between two readings; None if one of them is missing."""
    if before is None or after is None:
        return None
    return ServerUse(
        cpu_ns=after.cpu_ns - before.cpu_ns,
        rss_before_bytes=before.rss_bytes,
        rss_after_bytes=after.rss_bytes,
        rss_peak_bytes=after.rss_peak_bytes,
        threads=after.threads,
    )


def server_loads(window: Window) -> list[ServerLoad]:
    """Commands and items of each of several servers; empty for one, or if one reports none."""
    commands = commands_per_server(window.before, window.after)
    loads = [
        ServerLoad(commands=count, items=stats.number("curr_items"))
        for count, stats in zip(commands, window.after, strict=bool(commands))
    ]
    return loads if len(loads) > 1 else []


def slab_classes(
    server: RunningServer, before: Sequence[ServerStats], after: Sequence[ServerStats]
) -> list[SlabClass]:
    """The size classes of servers that have evicted items since `before`; else empty."""
    evicted = [now.delta(then, "evictions") for then, now in zip(before, after, strict=True)]
    if not any(evicted):
        return []
    told = zip(server.stats_about("slabs"), server.stats_about("items"), strict=False)
    classes: dict[int, list[SlabClass]] = {}
    for slabs, items in told:
        for one in _classes(slabs, items):
            classes.setdefault(one.chunk_bytes, []).append(one)
    return [
        SlabClass(
            chunk_bytes=size,
            items=sum(one.items for one in alike),
            memory_bytes=sum(one.memory_bytes for one in alike),
            evictions=sum(one.evictions for one in alike),
        )
        for size, alike in sorted(classes.items())
    ]


def _classes(slabs: ServerStats, items: ServerStats) -> Iterator[SlabClass]:
    """The classes of one server, from `stats slabs` and `stats items`."""
    for name in slabs:
        number, _, what = name.partition(":")
        size, pages = slabs.number(name), slabs.number(f"{number}:total_pages")
        if what == "chunk_size" and size is not None and pages is not None:
            yield SlabClass(
                chunk_bytes=size,
                items=items.number(f"items:{number}:number") or 0,
                memory_bytes=size * pages * (slabs.number(f"{number}:chunks_per_page") or 1),
                evictions=items.number(f"items:{number}:evicted") or 0,
            )


def counts_since(ahead_ns: int, command_counts: Sequence[CommandCount]) -> list[CommandCount]:
    """Readings by the window's clock, which began some time after the sampler's."""
    moved = [
        msgspec.structs.replace(reading, at_ns=reading.at_ns - ahead_ns)
        for reading in command_counts
    ]
    return [reading for reading in moved if reading.at_ns >= 0]


def _both(one: Callable[[int], None], other: Callable[[int], None]) -> Callable[[int], None]:
    def progress(ops: int) -> None:
        one(ops)
        other(ops)

    return progress


def all_played(done: Done) -> Done:
    """The results with the lead-ins of slices, as the server has counted them."""
    if done.lead_in is None:
        return done
    operations = merge_kinds([done.operations, done.lead_in])
    return msgspec.structs.replace(done, operations=operations)
