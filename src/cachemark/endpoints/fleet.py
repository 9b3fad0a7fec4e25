"""Several workers used as one: each plays its segment of the tape; their results are merged."""

import math
import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import msgspec

from cachemark.endpoints.witness import Witness, look_pause_s
from cachemark.endpoints.worker import Worker
from cachemark.host.noise import Pauses
from cachemark.model import protocol
from cachemark.model.errors import TrialError
from cachemark.model.merging import merge, merge_slices
from cachemark.model.outcome import Observed
from cachemark.model.protocol import Progress

# A worker reports about once a second: this is longer than a pause of the machine.
_MAX_REPORTS = 3
# With failures, in a row or not: a server that answers now and then could take hours.
_MAX_FAILING_REPORTS = 20
# Several workers start at the same planned time. By then the request must have reached them all.
_START_AHEAD_NS = 100_000_000
_SLICE_AHEAD_NS = 1_000_000
_TICK_S = 0.2
# A slice or a phase may last two time-outs longer than it should, and a machine may pause.
_GRACE_S = 5.0
# Above this delay a slice is late, and the fleet looks for the cause.
_LATE_S = 0.1
# A thread wakes later than this only if the machine halts.
_HALT_NS = 50_000_000


class RunMonitor(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is monitored.

    `progress` is called with the number of operations so far. If no worker sends a message for
    `silence_timeout_s`, the run fails.
    """

    progress: Callable[[int], None]
    silence_timeout_s: float


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The segments of the tape that a fleet plays: from `first` on, of `segments` in all."""

    first: int
    segments: int


class Fleet:
    """The workers of one trial. Use as a context manager: it stops and reaps them all.

    They play the whole tape together, unless `share` says that other hosts play some of it.
    `generators` of load, if any, play each phase beside them, and they alone store the keys;
    `generated` is the result of their last phase.
    """

    def __init__(self, command: list[str], count: int, *, cpus: str, name: str) -> None:
        self._stack = ExitStack()
        self.workers: list[Worker] = []
        self.share = Share(first=0, segments=count)
        self.began_unix_ns = 0
        self.ready: protocol.Ready | None = None
        self.generators: Fleet | None = None
        self.generated: protocol.Done | None = None
        # Delay of the last slice's request to the last worker, after the slice's planned start.
        self.slice_late_ns = 0
        # Its excess over its planned length, if a process was stopped in it or the machine halted.
        self.slice_paused_ns = 0
        # Processes whose stops count beside the stops of the workers.
        self.server_pids: list[int] = []
        self._pauses = Pauses()
        self.timeout_s = 0.0
        # Observations from outside during the last phase.
        self.observed: Observed | None = None
        self.witnesses: dict[Worker, Witness] = {}
        self._began_ns = 0
        self._duration_ns: int | None = None
        self._slices_elapsed_ns = 0
        self._slice: tuple[protocol.Slice | None, bytes] = None, b""
        with ExitStack() as stack:
            for number in range(count):
                label = f"{name} #{number}" if count > 1 else name
                worker = Worker(command, cpus=cpus, name=label)
                self.workers.append(stack.enter_context(worker))
            self._stack = stack.pop_all()

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def _pids(self) -> list[int]:
        return [worker.pid for worker in self.workers]

    def hello(self, timeout_s: float) -> protocol.Ready:
        """Send `hello` to all workers; returns the answer of the first. Raises TrialError."""
        answers = [worker.hello(timeout_s) for worker in self.workers]
        self.ready = answers[0]
        return self.ready

    def prepare(self, request: protocol.Prepare, timeout_s: float) -> None:
        """Send `prepare` to all workers, each with its own segment. Raises TrialError."""
        self.timeout_s = request.timeout_ms / 1e3
        for number, worker in enumerate(self.workers, self.share.first):
            segment = (number, self.share.segments)
            worker.prepare(msgspec.structs.replace(request, segment=segment), timeout_s)

    def run(self, request: protocol.RunRequest, watch: RunMonitor) -> protocol.Done:
        """Play one phase on all workers at once. Raises TrialError.

        The request's number of operations is for all workers together.
        """
        if self.generators is None:
            return _play([self], request, watch)[0]
        if request.phase == "prefill":
            return self.generators.run(request, watch)
        # The tapes differ, so the phase ends by time.
        start = time.time_ns() + _START_AHEAD_NS
        together = msgspec.structs.replace(request, start_unix_ns=start)
        done, self.generated = _play([self, self.generators], together, watch)
        return done

    def ask(self, request: protocol.RunRequest) -> None:
        """Send the request of a phase to all workers, and do not wait for their answers."""
        start = request.start_unix_ns
        if not start and len(self.workers) > 1:
            start = time.time_ns() + _START_AHEAD_NS
        self.began_unix_ns = start or time.time_ns()
        began_ns = self._began_ns = time.monotonic_ns() + self.began_unix_ns - time.time_ns()
        duration_ms = request.duration_ms if request.ops is None else None
        self._duration_ns = None if duration_ms is None else duration_ms * 1_000_000
        self.witnesses = {
            worker: Witness(worker.pid, began_ns, self._duration_ns) for worker in self.workers
        }
        segments = self.share.segments
        for number, worker in enumerate(self.workers, self.share.first):
            ops = request.ops
            if ops is not None:
                ops = ops // segments + (number < ops % segments)
            worker.send(msgspec.structs.replace(request, start_unix_ns=start, ops=ops))

    def observe(self) -> None:
        """Sum up the witnesses' observations, after all workers have answered a phase."""
        seen = self.witnesses.values()
        cpu_ns = [witness.cpu_ns for witness in seen if witness.cpu_ns is not None]
        self.observed = Observed(
            wall_ns=time.monotonic_ns() - self._began_ns,
            lasted_ns=max(witness.lasted_ns for witness in seen),
            duration_ns=self._duration_ns,
            cpu_ns=sum(cpu_ns) if cpu_ns else None,
            # Of several workers, one may still start or already sum up while another one plays.
            cpu_readings=[*next(iter(seen)).cpu_readings] if self.share.segments == 1 else [],
        )

    def begin_slices(self, timeout_s: float) -> None:
        """Make all workers ready to play slices. Raises TrialError."""
        self._slices_elapsed_ns = 0
        for worker in self.workers:
            worker.begin_slices(timeout_s)

    def slice(self, request: protocol.Slice) -> protocol.SliceDone:
        """Play one slice on all workers at once, at its planned start, if it has one.

        Do little here: this process shares the CPUs of the measured ones. Raises TrialError.
        """
        if request.start_unix_ns:
            return self._common_slice(request)
        if len(self.workers) > 1:
            start = time.time_ns() + _SLICE_AHEAD_NS
            return self._common_slice(msgspec.structs.replace(request, start_unix_ns=start))
        if request is not self._slice[0]:
            self._slice = request, protocol.encode(request)
        began_ns = time.monotonic_ns()
        self._pauses.watch(self._pids, self.server_pids)
        (worker,) = self.workers
        worker.send_line(self._slice[1])
        return self._slices_done(request, began_ns)[0]

    def _common_slice(self, request: protocol.Slice) -> protocol.SliceDone:
        line = protocol.encode(request)
        self._pauses.watch(self._pids, self.server_pids)
        for worker in self.workers:
            worker.send_line(line)
        late_ns = time.time_ns() - request.start_unix_ns
        self.slice_late_ns = max(0, late_ns)
        began_ns = time.monotonic_ns() - min(0, late_ns)
        done = merge_slices(self._slices_done(request, began_ns))
        self._slices_elapsed_ns += done.elapsed_ns
        return done

    def _slices_done(self, request: protocol.Slice, began_ns: int) -> list[protocol.SliceDone]:
        """The answers of all workers to a slice that begins at a monotonic time."""
        ahead_s = max(0, began_ns - time.monotonic_ns()) / 1e9
        limit_s = request.length_us / 1e6 + 2 * self.timeout_s + _GRACE_S
        due_s = ahead_s + request.length_us / 1e6 + _LATE_S
        done = [worker.slice_done(due_s, limit_s, self._pauses) for worker in self.workers]
        pauses = self._pauses
        stopped = pauses.stopped_ns or pauses.server_stopped_ns
        paused = stopped or (pauses.longest_halt_ns or 0) > _HALT_NS
        planned_ns = began_ns + request.length_us * 1000
        self.slice_paused_ns = max(0, time.monotonic_ns() - planned_ns) if paused else 0
        return done

    def end_slices(self, timeout_s: float = 60.0) -> protocol.Done:
        """End the slices; returns the sum of all counted parts. Raises TrialError."""
        done = merge([worker.end_slices(timeout_s) for worker in self.workers])
        if len(self.workers) == 1:
            return done
        elapsed_ns = self._slices_elapsed_ns
        return msgspec.structs.replace(done, elapsed_ns=elapsed_ns, send_elapsed_ns=elapsed_ns)

    def bye(self) -> None:
        """Ask all workers to exit."""
        for fleet in filter(None, [self, self.generators]):
            for worker in fleet.workers:
                worker.bye()

    def kill(self) -> None:
        """Kill all workers. A call that waits for an answer then raises TrialError."""
        for worker in self.workers:
            worker.kill()

    def log_tail(self) -> str:
        """The end of each worker's stderr, one after the other."""
        return "".join(worker.log_tail() for worker in self.workers)


class _Collector:
    """Collects the answers of all workers during a run."""

    def __init__(self, witnesses: dict[Worker, Witness], watch: RunMonitor, limit_s: float) -> None:
        self._witnesses = witnesses
        self._watch = watch
        self._limit_s = limit_s
        self._waiting = dict.fromkeys(witnesses, 0)
        self._ops = dict.fromkeys(witnesses, 0)
        self._stalls = {worker: StallDetector() for worker in witnesses}
        self._done: dict[Worker, protocol.Done] = {}
        self._began_s = self._last_answer_s = time.monotonic()

    def collect(self, what: str) -> dict[Worker, protocol.Done]:
        with selectors.DefaultSelector() as selector:
            for worker in self._waiting:
                selector.register(worker.out, selectors.EVENT_READ, worker)
            while self._waiting:
                readings = {worker: self._witnesses[worker].read() for worker in self._waiting}
                pause_s = look_pause_s(time.monotonic() - self._began_s, _TICK_S)
                spoke: set[Worker] = {key.data for key, _ in selector.select(pause_s)}
                for worker in readings.keys() - spoke:
                    self._witnesses[worker].silent(readings[worker])
                for worker in spoke:
                    if self._read_answers(worker, what):
                        selector.unregister(worker.out)
                self._check_silence(what)
        return self._done

    def _read_answers(self, worker: Worker, what: str) -> bool:
        """Process the available answers of a worker; True if its run is done."""
        while (answer := worker.poll_answer()) is not None:
            self._last_answer_s = time.monotonic()
            self._check_length(what)
            if isinstance(answer, protocol.Progress):
                if what == "prefill" and self._stalls[worker].is_stalled(answer):
                    raise TrialError(
                        f"{worker.name}: the prefill was given up: {answer.errors} operations "
                        f"failed and {answer.ops} succeeded, most likely because the server does "
                        "not answer in time",
                        "a longer timing.timeout_ms, or another server",
                    )
                self._witnesses[worker].progress(answer.ops + answer.errors)
                self._ops[worker] = answer.ops
                self._watch.progress(sum(self._ops.values()))
            elif isinstance(answer, protocol.Done) and answer.phase == what:
                self._done[worker] = answer
                del self._waiting[worker]
                return True
            else:
                raise worker.error_for_answer(answer, what)
        return False

    def _check_length(self, what: str) -> None:
        if self._last_answer_s - self._began_s > self._limit_s:
            name = next(iter(self._waiting)).name
            raise TrialError(
                f"{name}: has not ended its {what} {self._limit_s:g} s after its begin"
            )

    def _check_silence(self, what: str) -> None:
        if self._waiting and time.monotonic() - self._last_answer_s > self._watch.silence_timeout_s:
            name = next(iter(self._waiting)).name
            raise TrialError(
                f"{name}: sent no message for {self._watch.silence_timeout_s:g} s of {what}"
            )


def phase_limit_s(request: protocol.RunRequest, watch: RunMonitor, timeout_s: float) -> float:
    """The time limit of a phase in s; infinite if it ends after a number of operations."""
    if request.duration_ms is None:
        return math.inf
    ahead_s = max(0.0, request.start_unix_ns / 1e9 - time.time()) if request.start_unix_ns else 0.0
    late_s = 2 * timeout_s + watch.silence_timeout_s + _GRACE_S
    return ahead_s + request.duration_ms / 1e3 + late_s


def _play(
    fleets: Sequence[Fleet], request: protocol.RunRequest, watch: RunMonitor
) -> list[protocol.Done]:
    """Play one phase on all fleets at once; returns the `done` of each fleet."""
    for fleet in fleets:
        fleet.ask(request)
    seen = {worker: witness for fleet in fleets for worker, witness in fleet.witnesses.items()}
    limit_s = max(phase_limit_s(request, watch, fleet.timeout_s) for fleet in fleets)
    done = _Collector(seen, watch, limit_s).collect(request.phase)
    for fleet in fleets:
        fleet.observe()
    return [merge([done[worker] for worker in fleet.workers]) for fleet in fleets]


class StallDetector:
    """Counts a worker's reports with new failures."""

    def __init__(self) -> None:
        self._ops = 0
        self._errors = 0
        self._in_a_row = 0
        self._in_all = 0

    def is_stalled(self, report: Progress) -> bool:
        """Whether several reports in a row had failures only, or too many in all had failures."""
        if report.ops > self._ops:
            self._in_a_row = 0
        elif report.errors > self._errors:
            self._in_a_row += 1
        self._in_all += report.errors > self._errors
        self._ops, self._errors = report.ops, report.errors
        return self._in_a_row >= _MAX_REPORTS or self._in_all >= _MAX_FAILING_REPORTS
