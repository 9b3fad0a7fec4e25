"""One trial: fresh server and workers, prefill, warm-up, measure; an outcome whatever happens."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec

from cachemark.endpoints.capabilities import select_wire, unclaimed
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.servers import ProcessUse, RunningServer, options_for, running
from cachemark.host.binaries import binaries, of_command
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.outcome import (
    Binary,
    CommandCount,
    Finding,
    Generators,
    HostPart,
    Observed,
    Outcome,
)
from cachemark.model.plan import warmup_ms
from cachemark.model.protocol import Done, Prepare, Ready, RunRequest
from cachemark.model.server_stats import merge_stats
from cachemark.model.units import instant_text
from cachemark.runs.audit.fitness import skip_reason
from cachemark.runs.trials.callers import callers_of, demand_of, processes_of, refuse_connections
from cachemark.runs.trials.judging import judged
from cachemark.runs.trials.prefill import fill_sample_ops, ops_to_fill, run_prefill, storage
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.window import Window, play_window, server_loads

_LOG_CHARS = 4000
PREFILL = RunRequest(phase="prefill")


class Player(Protocol):
    """The workers of a trial, wherever they are."""

    def run(self, request: RunRequest, watch: RunMonitor) -> Done:
        """Play one phase on all of them. Raises TrialError."""
        ...

    def bye(self) -> None:
        """End them, after the last phase."""
        ...


class Sides(NamedTuple):
    """The two sides of a trial, wherever they are; `empty` is the server before any operation.

    `window` plays the measured window.
    """

    server: RunningServer
    player: Player
    empty: ProcessUse | None
    window: Callable[[RunRequest], Window]


class Endpoints(NamedTuple):
    """The two sides of a trial while it is played; `empty` is the server before any operation."""

    server: RunningServer
    fleet: Fleet
    empty: ProcessUse | None


def run_trial(setting: Setting, progress: Callable[[int], None]) -> Outcome:
    """Run one trial. Never raises for a failure of a server or worker: it is in the outcome."""
    trial = TrialRun(setting, progress)
    if trial.attempt(trial.play):
        trial.judge()
    return trial.outcome


class TrialRun:
    """A trial while it is played.

    `outcome` holds what is known so far, so a trial that breaks off keeps all of it. It is
    `failed` until the trial has been judged.
    """

    def __init__(self, setting: Setting, progress: Callable[[int], None]) -> None:
        self.setting = setting
        self._began_s = time.monotonic()
        self.watch = RunMonitor(
            progress=progress, silence_timeout_s=setting.timing.silence_ms / 1e3
        )
        self._ticks: list[CommandCount] = []
        self._host_findings: list[Finding] = []
        self._fleet: Fleet | None = None
        self.generators = (
            TrialRun(setting.generators, lambda _: None) if setting.generators else None
        )
        self.outcome = Outcome(
            run=setting.run,
            trial=setting.trial,
            workload=setting.workload,
            load=setting.cell_load,
            timing=setting.timing,
            state="failed",
            started_at=instant_text(time.time_ns()),
            worker_command=setting.client.client.command,
            worker_cpus=setting.worker_cpus,
            tape=setting.tape.facts,
            awake=setting.awake_pid is not None,
        )

    def record(self, **fields: Any) -> None:
        """Add to the outcome; `fields` are fields of Outcome."""
        self.outcome = msgspec.structs.replace(self.outcome, **fields)

    def attempt(self, action: Callable[[], None]) -> bool:
        """Do something, and say whether it succeeded: a failure is in the outcome."""
        try:
            action()
        except TrialError as error:
            self.fail(error)
            return False
        finally:
            self.record(wall_ms=round((time.monotonic() - self._began_s) * 1e3))
        return True

    def fail(self, error: TrialError) -> None:
        """Record why the trial was not played to its end."""
        if isinstance(error, UnsupportedError):
            self.record(state="unsupported")
        self.record(reason=error.text, remedy=error.remedy)

    def play(self) -> None:
        """Play every phase. Raises UnsupportedError and TrialError."""
        with ExitStack() as stack:
            server, player, empty, window = self.connected_sides(stack)
            self.prefill(partial(player.run, PREFILL, self.watch))
            self.record_window(empty, window(self.warm_up(server, player)))
            player.bye()

    def connected_sides(self, stack: ExitStack) -> Sides:
        """Start both sides and connect them; they end with `stack`.

        Raises UnsupportedError and TrialError.
        """
        server, fleet, empty = self.connected_ends(stack)
        window = partial(
            play_window,
            server,
            fleet,
            watch=self.watch,
            awake_pid=self.setting.awake_pid,
            keep=lambda samples: self.record(samples=samples),
        )
        return Sides(server, fleet, empty, window)

    def prefill(self, play: Callable[[], Done]) -> None:
        """Store the keys, if the workload asks for it: `play` does so once. Raises TrialError."""
        if self.setting.workload.prefill > 0:
            self.record(prefill=run_prefill(play).counts_alone)

    def connected_ends(self, stack: ExitStack) -> Endpoints:
        """Start the server and the workers here, and connect them.

        Both end with `stack`. Raises UnsupportedError and TrialError.
        """
        for side in (self, self.generators):
            if side:
                side.setting.client.client.require()
        self._refuse()
        server = stack.enter_context(self._target())
        self.record(server=server.facts)
        stack.callback(lambda: self.record(server=server.final_facts()))
        empty = server.use()
        fleet = self._connect(stack, server)
        fleet.server_pids = server.pids + server.between
        if self.generators:
            fleet.generators = self.generators._connect(stack, server)
        return Endpoints(server, fleet, empty)

    def _connect(self, stack: ExitStack, server: RunningServer) -> Fleet:
        """Start the workers and connect them. Raises UnsupportedError and TrialError."""
        setting, client = self.setting, self.setting.client.client
        count = processes_of(setting.load, client.concurrency)
        fleet = stack.enter_context(
            Fleet(client.command, count, cpus=setting.worker_cpus, name=client.id)
        )
        self._fleet = fleet
        stack.callback(lambda: self.record(log=fleet.log_tail()[-_LOG_CHARS:]))
        ready_s = setting.timing.ready_ms / 1e3
        ready = fleet.hello(ready_s)
        self.record(worker=ready, binaries=self._binaries(server, fleet))
        request = self.prepare_request(server, ready)
        fleet.prepare(request, ready_s)
        if request.servers and setting.workload.server_warmup_ops:
            self._warm_server(request, count)
        return fleet

    def _warm_server(self, request: Prepare, count: int) -> None:
        """Play with workers of their own: the server is warm then, and the client is cold."""
        setting, client = self.setting, self.setting.client.client
        ready_s = setting.timing.ready_ms / 1e3
        with Fleet(client.command, count, cpus=setting.worker_cpus, name=client.id) as others:
            others.hello(ready_s)
            others.prepare(request, ready_s)
            ops = setting.workload.server_warmup_ops
            others.run(RunRequest(phase="warmup", ops=ops), self.watch)
            others.bye()

    def kill_workers(self) -> None:
        """Kill the workers; calls that wait for them raise TrialError. From any thread."""
        if self._fleet is not None:
            self._fleet.kill()

    def record_window(self, empty: ProcessUse | None, window: Window) -> None:
        """Add the measurements to the outcome; `empty` is the server before any operation."""
        use = window.use
        if use is not None and empty is not None:
            use = msgspec.structs.replace(use, rss_before_bytes=empty.rss_bytes)
        self._ticks = window.command_counts
        self.record(
            measure_started_at=instant_text(window.began_unix_ns),
            measure=window.done,
            observed=window.observed,
            stats_before=dict(merge_stats(window.before)),
            stats_after=dict(merge_stats(window.after)),
            server_use=use,
            server_loads=server_loads(window),
            slab_classes=window.slab_classes,
            noise=window.noise,
            rounds=window.rounds,
            generators=self._generated(window.generated, window.generated_observed),
        )

    def _generated(self, measure: Done | None, observed: Observed | None) -> Generators | None:
        """The load generators' result; None if the client makes its load itself."""
        if self.generators is None:
            return None
        setting, outcome = self.generators.setting, self.generators.outcome
        return Generators(
            client=setting.client.text,
            worker=outcome.worker,
            command=outcome.worker_command,
            cpus=outcome.worker_cpus,
            tape=setting.tape.facts,
            measure=measure,
            observed=observed,
        )

    def judge(self) -> None:
        """Add the verdict. The trial must have been played to its end."""
        self.outcome = judged(self.outcome, self.setting, self._ticks, self._host_findings)

    def record_hosts(
        self, parts: list[HostPart], start_skew_ns: int, findings: Sequence[Finding]
    ) -> None:
        """Add each host's measurements to the outcome; `findings` go into the verdict."""
        self.record(hosts=parts, start_skew_ns=start_skew_ns)
        self._host_findings = list(findings)

    @property
    def elapsed_ns(self) -> int:
        """The time since the trial began."""
        return round((time.monotonic() - self._began_s) * 1e9)

    def _target(self) -> AbstractContextManager[RunningServer]:
        setting = self.setting
        if setting.target is not None:
            return setting.target()
        return running(setting.server, cpus=setting.server_cpus)

    def _refuse(self, wire: str = "") -> None:
        """Raise UnsupportedError if the server or the level is unfit to be timed."""
        setting = self.setting
        if why := skip_reason(setting.restrictions, setting.workload, setting.load, wire):
            raise UnsupportedError(why)

    def _binaries(self, server: RunningServer, fleet: Fleet) -> list[Binary]:
        return [
            *binaries("server", server.pids),
            *binaries("worker", [worker.pid for worker in fleet.workers]),
            *of_command("script", self.setting.client.client.command),
        ]

    def prepare_request(self, server: RunningServer, ready: Ready) -> Prepare:
        setting, load, client = self.setting, self.setting.load, self.setting.client
        threads, connections, notes = callers_of(load, client.client.concurrency, ready)
        self.record(notes=[*self.outcome.notes, *notes])
        refuse_connections(connections * processes_of(load, client.client.concurrency), server)
        wire = select_wire(load, ready)
        self.record(wire=wire)
        self._refuse(wire)
        quirks = [*server.facts.quirks, *setting.restrictions.quirks]
        request = Prepare(
            servers=server.addresses,
            wire=wire,
            threads=threads,
            connections=connections,
            depth=load.depth,
            refill=load.refill,
            tape=str(setting.tape.path),
            timeout_ms=setting.timing.timeout_ms,
            options={
                **options_for(quirks, ready.capabilities, client.client.id),
                **server.worker_options(wire),
                **client.options,
            },
        )
        self._refuse_unclaimed(request, ready)
        return request

    def _refuse_unclaimed(self, request: Prepare, ready: Ready) -> None:
        """Raise UnsupportedError if the trial needs more than the worker claims."""
        setting = self.setting
        demand = demand_of(request, setting.workload, setting.load, slices=setting.slices)
        if lacking := unclaimed(demand, ready):
            raise UnsupportedError(lacking)

    def warm_up(self, server: RunningServer, fleet: Player) -> RunRequest:
        """Warm up; returns the end of the measured window: a time, a number, or a fill."""
        workload, timing = self.setting.workload, self.setting.timing
        if workload.fill_percent is not None:
            return RunRequest(phase="measure", ops=self._fill_ops(server, fleet))
        if duration_ms := warmup_ms(workload, timing):
            request = RunRequest(phase="warmup", duration_ms=duration_ms)
            self.record(warmup=fleet.run(request, self.watch).counts_alone)
        if workload.ops is not None:
            return RunRequest(phase="measure", ops=workload.ops)
        if workload.passes is not None:
            return RunRequest(phase="measure", ops=workload.passes * self.setting.tape.facts.ops)
        return RunRequest(phase="measure", duration_ms=timing.measure_ms)

    def _fill_ops(self, server: RunningServer, fleet: Player) -> int:
        workload = self.setting.workload
        before = storage(server.stats())
        request = RunRequest(phase="warmup", ops=fill_sample_ops(workload))
        sample = fleet.run(request, self.watch)
        self.record(warmup=sample.counts_alone)
        return ops_to_fill(workload, sample, before, storage(server.stats()))
