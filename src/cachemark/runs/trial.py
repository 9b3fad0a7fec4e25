"""One trial: fresh server and workers, prefill, warm-up, measure; an outcome whatever happens."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import msgspec

from cachemark.analysis.verdict import concluded, invalid, judge
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.fleet import Fleet, Watch
from cachemark.endpoints.servers import RunningServer, ServerSpec, options_for, running
from cachemark.endpoints.wire import chosen_wire
from cachemark.host import NoiseProbe
from cachemark.host.binaries import binaries, of_command
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.experiment import Load, NoisePolicy, Timing, Workload
from cachemark.model.outcome import (
    Binary,
    HostNoise,
    Outcome,
    Sample,
    ServerFacts,
    ServerUse,
    Tick,
    Trial,
)
from cachemark.model.protocol import Done, Phase, Prepare, Ready, Run
from cachemark.model.schedule import Schedule
from cachemark.runs.audit.claims import kinds
from cachemark.runs.audit.fitness import distrust, objection
from cachemark.runs.audit.value import Caution
from cachemark.runs.prefill import filled
from cachemark.runs.sampler import Sampler
from cachemark.runs.tapes import Tape

# So much of a fill's tape is played first, to see what an item takes in the server's account.
_FILL_SAMPLE = 0.02
# Readings of the server's counters in a window, and how close they may come.
_TICKS = 25
_SHORTEST_TICK_S = 0.1
# Kinds of operation that came after most workers: those refuse a tape that has them.
_RARE = frozenset({"fetch", "append", "prepend", "flush"})


# Starts what the client talks to, where that is no server as an experiment names one.
Target = Callable[[], AbstractContextManager[RunningServer]]


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """All that a trial needs to know."""

    run: str
    trial: Trial
    client: ClientSpec
    server: ServerSpec
    workload: Workload
    load: Load
    timing: Timing
    tape: Tape
    server_cpus: str
    worker_cpus: str
    caution: Caution = Caution()
    noise: NoisePolicy = "auto"
    target: Target | None = None
    awake_pid: int | None = None


class _Notes:
    """What is known of a trial so far; a failure half-way still leaves it for the outcome."""

    def __init__(self) -> None:
        self.worker: Ready | None = None
        self.wire = ""
        self.server: ServerFacts | None = None
        self.phases: dict[Phase, Done] = {}
        self.before: dict[str, str] = {}
        self.after: dict[str, str] = {}
        self.use: ServerUse | None = None
        self.samples: list[Sample] = []
        self.noise: HostNoise | None = None
        self.ticks: list[Tick] = []
        self.measure_began_unix_ns = 0
        self.notes: list[str] = []
        self.binaries: list[Binary] = []
        self.log = ""


def run_trial(setting: Setting, progress: Callable[[int], None]) -> Outcome:
    """Run one trial. Never raises for what a server or a worker did: that is in the outcome."""
    began = time.monotonic()
    started_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    notes = _Notes()
    blank = Outcome(
        run=setting.run,
        trial=setting.trial,
        workload=setting.workload,
        load=setting.load,
        timing=setting.timing,
        state="failed",
        started_at=started_at,
        worker_command=setting.client.client.command,
        worker_cpus=setting.worker_cpus,
        tape=setting.tape.facts,
        awake=setting.awake_pid is not None,
    )
    try:
        _play(setting, notes, progress)
    except UnsupportedError as error:
        blank = msgspec.structs.replace(
            blank, state="unsupported", reason=error.text, remedy=error.remedy
        )
    except TrialError as error:
        blank = msgspec.structs.replace(blank, reason=error.text, remedy=error.remedy)
    else:
        blank = _judged(blank, setting, notes)
    return msgspec.structs.replace(
        blank,
        measure_started_at=_utc(notes.measure_began_unix_ns),
        wall_ms=round((time.monotonic() - began) * 1e3),
        worker=notes.worker,
        wire=notes.wire,
        binaries=notes.binaries,
        server=notes.server,
        prefill=notes.phases.get("prefill"),
        warmup=notes.phases.get("warmup"),
        measure=notes.phases.get("measure"),
        stats_before=notes.before,
        stats_after=notes.after,
        server_use=notes.use,
        samples=notes.samples,
        noise=notes.noise,
        log=notes.log[-4000:],
    )


def _utc(unix_ns: int) -> str:
    """An instant as an outcome keeps it; empty for none."""
    if not unix_ns:
        return ""
    instant = datetime.datetime.fromtimestamp(unix_ns / 1e9, datetime.UTC)
    return instant.isoformat(timespec="milliseconds")


def _judged(blank: Outcome, setting: Setting, notes: _Notes) -> Outcome:
    doubt = distrust(setting.caution, notes.before, notes.after)
    judgement = judge(
        notes.phases["measure"],
        workload=setting.workload,
        load=setting.load,
        before=doubt.before,
        after=doubt.after,
        shared_server=setting.server.kind == "remote",
        merges=notes.worker is not None and "merges" in notes.worker.capabilities,
        ticks=_with_due(setting, notes.ticks),
        noise=notes.noise,
        policy=setting.noise,
    )
    if doubt.reason:
        findings = [*judgement.findings, invalid("distrust", doubt.reason)]
        judgement = concluded(findings, judgement.steadiness)
    return msgspec.structs.replace(
        blank,
        state="measured",
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        notes=[*notes.notes, *doubt.notes, *judgement.notes],
        findings=judgement.findings,
        steadiness=judgement.steadiness,
    )


def _play(setting: Setting, notes: _Notes, progress: Callable[[int], None]) -> None:
    client = setting.client.client
    missing = client.missing()
    if missing:
        raise UnsupportedError(missing, client.setup)
    _object(setting, "" if setting.load.wire == "own" else setting.load.wire)
    with _target(setting) as server:
        notes.server = server.facts
        fleet = Fleet(client.command, _processes(setting), cpus=setting.worker_cpus, name=client.id)
        with fleet:
            try:
                _phases(setting, notes, server, fleet, progress)
            finally:
                notes.log = fleet.log_tail()


def _target(setting: Setting) -> AbstractContextManager[RunningServer]:
    if setting.target is not None:
        return setting.target()
    return running(setting.server, cpus=setting.server_cpus)


def _object(setting: Setting, wire: str) -> None:
    """Raise UnsupportedError where the server or the level is not fit to be timed."""
    why = objection(setting.caution, setting.workload, setting.load, wire)
    if why:
        raise UnsupportedError(why)


def _require(setting: Setting, ready: Ready) -> None:
    """Raise UnsupportedError for what few workers play: newer kinds, and time to think."""
    needed = {kind for kind in kinds(setting.workload) if kind.removesuffix("_noreply") in _RARE}
    needed |= {"think"} if setting.load.think else set()
    lacking = sorted(needed - set(ready.capabilities))
    if lacking:
        raise UnsupportedError(f"{ready.client} has no {lacking[0]}")


def _phases(
    setting: Setting,
    notes: _Notes,
    server: RunningServer,
    fleet: Fleet,
    progress: Callable[[int], None],
) -> None:
    timing = setting.timing
    ready_s = timing.ready_ms / 1e3
    empty = server.use()
    notes.worker = fleet.hello(ready_s)
    notes.binaries = [
        *binaries("server", server.pids),
        *binaries("worker", [worker.pid for worker in fleet.workers]),
        *of_command("script", setting.client.client.command),
    ]
    fleet.prepare(_prepare(setting, notes, server, notes.worker), ready_s)
    watch = Watch(progress=progress, silence_s=timing.silence_ms / 1e3)
    if setting.workload.prefill > 0:
        notes.phases["prefill"] = filled(lambda: fleet.run(Run(phase="prefill"), watch))
    request = _window(setting, notes, server, fleet, watch)
    _measure(request, notes, server, fleet, watch, awake_pid=setting.awake_pid)
    if notes.use is not None and empty is not None:
        notes.use = msgspec.structs.replace(notes.use, rss_before_bytes=empty.rss_bytes)
    fleet.bye()


def _window(
    setting: Setting, notes: _Notes, server: RunningServer, fleet: Fleet, watch: Watch
) -> Run:
    """Warm up, and say what ends the measured window: a time, a number, or a fill."""
    workload, timing = setting.workload, setting.timing
    if workload.fill_percent is not None:
        ops = _fill_ops(setting, notes, server, fleet, watch)
        return Run(phase="measure", ops=ops)
    warmup_ms = timing.warmup_ms if workload.warmup_ms is None else workload.warmup_ms
    if warmup_ms:
        notes.phases["warmup"] = fleet.run(Run(phase="warmup", duration_ms=warmup_ms), watch)
    if workload.ops is not None:
        return Run(phase="measure", ops=workload.ops)
    return Run(phase="measure", duration_ms=timing.measure_ms)


def _fill_ops(
    setting: Setting, notes: _Notes, server: RunningServer, fleet: Fleet, watch: Watch
) -> int:
    """How many operations fill the server to the part that is wanted.

    A first stretch of the tape tells what an item takes in the server's own account. The window
    plays the tape from its start, so those items are then written again, not besides. Asking the
    server during the fill instead would overshoot by all that lies in the sockets.
    """
    workload = setting.workload
    sample = max(1, round(workload.records * _FILL_SAMPLE))
    before = _held(server)
    notes.phases["warmup"] = done = fleet.run(Run(phase="warmup", ops=sample), watch)
    after = _held(server)
    ops = sum(op.ok for op in done.operations.values())
    each = (after[0] - before[0]) / ops if ops else 0
    if each <= 0:
        raise TrialError("the server's `bytes` do not grow as items are stored")
    needed = round((workload.fill_percent or 0) / 100 * after[1] / each)
    if needed > workload.records:
        raise TrialError(
            f"the tape holds {workload.records} operations, the fill needs {needed}",
            "give the workload more keys and records",
        )
    return needed


def _held(server: RunningServer) -> tuple[int, int]:
    """What the server says it holds, and may hold, in bytes."""
    stats = server.stats()
    try:
        return int(stats["bytes"]), int(stats["limit_maxbytes"])
    except (KeyError, ValueError) as error:
        raise UnsupportedError("the server tells no bytes and limit_maxbytes") from error


def _processes(setting: Setting) -> int:
    """How many workers: callers that are processes have one each."""
    each = setting.load.threads if setting.client.client.concurrency == "processes" else 1
    return setting.load.processes * each


def _prepare(setting: Setting, notes: _Notes, server: RunningServer, ready: Ready) -> Prepare:
    load = setting.load
    threads, connections = load.threads, load.connections or load.threads
    callers = setting.client.client.concurrency
    if threads > 1 and callers in ("processes", "forks"):
        notes.notes.append(f"{threads} processes instead of {threads} threads")
    if callers == "processes":
        connections = max(1, connections // threads)
        threads = 1
    elif threads > 1 and "threads" not in ready.capabilities:
        notes.notes.append(f"{threads} tasks on one event loop instead of {threads} threads")
        threads = 1
    notes.wire = chosen_wire(load, ready)
    _object(setting, notes.wire)
    _require(setting, ready)
    quirks = [*server.facts.quirks, *setting.caution.quirks]
    return Prepare(
        servers=server.addresses,
        wire=notes.wire,
        threads=threads,
        connections=connections,
        depth=load.depth,
        tape=str(setting.tape.path),
        timeout_ms=setting.timing.timeout_ms,
        options={
            **options_for(quirks, ready.capabilities, setting.client.client.id),
            **setting.client.options,
        },
    )


def _tick_s(worker: Ready | None, request: Run) -> float | None:
    """How often to read the server's counters: not at all where the worker keeps a course.

    Each reading delays an operation by some µs: ten a second are far too few to show in p99.9.
    """
    if worker is None or "course" in worker.capabilities or request.duration_ms is None:
        return None
    return min(1.0, max(_SHORTEST_TICK_S, request.duration_ms / 1e3 / _TICKS))


def _measure(
    request: Run,
    notes: _Notes,
    server: RunningServer,
    fleet: Fleet,
    watch: Watch,
    *,
    awake_pid: int | None,
) -> None:
    noise = NoiseProbe()
    own = [worker.pid for worker in fleet.workers] + server.pids
    notes.before = server.stats()
    use = server.use()
    noise.start(own, awake_pid)
    with Sampler(server, tick_s=_tick_s(notes.worker, request), noise=noise) as sampler:
        watched = msgspec.structs.replace(watch, progress=_both(sampler.heard, watch.progress))
        try:
            notes.phases["measure"] = fleet.run(request, watched)
        finally:
            notes.samples = sampler.samples
            notes.ticks = _since(fleet.began_unix_ns - sampler.began_unix_ns, sampler.ticks)
    notes.measure_began_unix_ns = fleet.began_unix_ns
    notes.noise = noise.stop()
    used = server.use()
    notes.after = server.stats()
    if use is not None and used is not None:
        notes.use = ServerUse(
            cpu_ns=used.cpu_ns - use.cpu_ns,
            rss_before_bytes=use.rss_bytes,
            rss_after_bytes=used.rss_bytes,
            rss_peak_bytes=used.rss_peak_bytes,
            threads=used.threads,
        )


def _since(ahead_ns: int, ticks: Sequence[Tick]) -> list[Tick]:
    """Readings by the window's clock, which began so long after the sampler's."""
    moved = [msgspec.structs.replace(tick, at_ns=tick.at_ns - ahead_ns) for tick in ticks]
    return [tick for tick in moved if tick.at_ns >= 0]


def _with_due(setting: Setting, ticks: Sequence[Tick]) -> list[Tick]:
    """What an open loop's tape had due by each reading; a closed loop's has nothing."""
    if setting.load.schedule == "closed" or not ticks:
        return list(ticks)
    schedule = Schedule(setting.tape.path)
    return [msgspec.structs.replace(tick, due=schedule.due(tick.at_ns)) for tick in ticks]


def _both(one: Callable[[int], None], other: Callable[[int], None]) -> Callable[[int], None]:
    def progress(ops: int) -> None:
        one(ops)
        other(ops)

    return progress
