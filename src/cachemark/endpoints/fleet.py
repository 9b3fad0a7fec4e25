"""Several workers used as one: each plays its segment of the tape; their results are merged."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import zip_longest

import msgspec

from cachemark.endpoints.stall import StallDetector
from cachemark.endpoints.worker import Worker
from cachemark.model import histogram
from cachemark.model.errors import TrialError
from cachemark.model.protocol import (
    Done,
    Prepare,
    Progress,
    Ready,
    Run,
    Slice,
    SliceDone,
    encode,
)
from cachemark.model.protocol_results import Groups, Operation, Sections, Timeline

# Several workers start at the same planned time. By then the request must have reached them all.
_START_AHEAD_NS = 100_000_000
_SLICE_AHEAD_NS = 1_000_000
_TICK_S = 0.5
# A slice may last two time-outs longer than it should, and a machine may pause.
_SLICE_GRACE_S = 5.0


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
    """

    def __init__(self, command: list[str], count: int, *, cpus: str, name: str) -> None:
        self._stack = ExitStack()
        self.workers: list[Worker] = []
        self.share = Share(first=0, segments=count)
        self.began_unix_ns = 0
        self.ready: Ready | None = None
        self._timeout_s = 0.0
        self._slices_elapsed_ns = 0
        self._slice: tuple[Slice | None, bytes] = None, b""
        with ExitStack() as stack:
            for number in range(count):
                label = f"{name} #{number}" if count > 1 else name
                worker = Worker(command, cpus=cpus, name=label)
                self.workers.append(stack.enter_context(worker))
            self._stack = stack.pop_all()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def hello(self, timeout_s: float) -> Ready:
        """Send `hello` to all workers; returns the answer of the first. Raises TrialError."""
        answers = [worker.hello(timeout_s) for worker in self.workers]
        self.ready = answers[0]
        return self.ready

    def prepare(self, request: Prepare, timeout_s: float) -> None:
        """Send `prepare` to all workers, each with its own segment. Raises TrialError."""
        self._timeout_s = request.timeout_ms / 1e3
        for number, worker in enumerate(self.workers, self.share.first):
            segment = (number, self.share.segments)
            worker.prepare(msgspec.structs.replace(request, segment=segment), timeout_s)

    def run(self, request: Run, watch: RunMonitor) -> Done:
        """Play one phase on all workers at once. Raises TrialError.

        The operations of a request are those of the whole tape; its planned start, if any, counts.
        """
        self.ask(request)
        return merge(list(_Collector(self.workers, watch).collect(request.phase).values()))

    def ask(self, request: Run) -> None:
        """Send the request of a phase to all workers, and do not wait for their answers."""
        start = request.start_unix_ns
        if not start and len(self.workers) > 1:
            start = time.time_ns() + _START_AHEAD_NS
        self.began_unix_ns = start or time.time_ns()
        segments = self.share.segments
        for number, worker in enumerate(self.workers, self.share.first):
            ops = None if request.ops is None else _ops_of_worker(request.ops, number, segments)
            worker.send(msgspec.structs.replace(request, start_unix_ns=start, ops=ops))

    def begin_slices(self, timeout_s: float) -> None:
        """Make all workers ready to play slices. Raises TrialError."""
        self._slices_elapsed_ns = 0
        for worker in self.workers:
            worker.begin_slices(timeout_s)

    def slice(self, request: Slice) -> SliceDone:
        """Play one slice on all workers at once. Raises TrialError.

        Little happens here, because this process shares the CPUs with what is measured.
        """
        if len(self.workers) > 1:
            return self._common_slice(request)
        if request is not self._slice[0]:
            self._slice = request, encode(request)
        (worker,) = self.workers
        worker.send_line(self._slice[1])
        return worker.slice_done(self._slice_limit_s(request))

    def _common_slice(self, request: Slice) -> SliceDone:
        start = time.time_ns() + _SLICE_AHEAD_NS
        line = encode(msgspec.structs.replace(request, start_unix_ns=start))
        for worker in self.workers:
            worker.send_line(line)
        limit_s = self._slice_limit_s(request)
        done = merge_slices([worker.slice_done(limit_s) for worker in self.workers])
        self._slices_elapsed_ns += done.elapsed_ns
        return done

    def _slice_limit_s(self, request: Slice) -> float:
        return request.length_us / 1e6 + 2 * self._timeout_s + _SLICE_GRACE_S

    def end_slices(self, timeout_s: float = 60.0) -> Done:
        """End the slices; returns the sum of all counted parts. Raises TrialError."""
        done = merge([worker.end_slices(timeout_s) for worker in self.workers])
        if len(self.workers) == 1:
            return done
        elapsed_ns = self._slices_elapsed_ns
        return msgspec.structs.replace(done, elapsed_ns=elapsed_ns, send_elapsed_ns=elapsed_ns)

    def bye(self) -> None:
        """Ask all workers to exit."""
        for worker in self.workers:
            worker.bye()

    def kill(self) -> None:
        """Kill all workers. What waits for an answer fails."""
        for worker in self.workers:
            worker.kill()

    def log_tail(self) -> str:
        """The end of each worker's stderr, one after the other."""
        return "".join(worker.log_tail() for worker in self.workers)


class _Collector:
    """Collects the answers of all workers during a run."""

    def __init__(self, workers: list[Worker], watch: RunMonitor) -> None:
        self._watch = watch
        self._waiting = dict.fromkeys(workers, 0)
        self._ops = dict.fromkeys(workers, 0)
        self._stalls = {worker: StallDetector() for worker in workers}
        self._done: dict[Worker, Done] = {}
        self._last_answer_s = time.monotonic()

    def collect(self, what: str) -> dict[Worker, Done]:
        with selectors.DefaultSelector() as selector:
            for worker in self._waiting:
                selector.register(worker.out, selectors.EVENT_READ, worker)
            while self._waiting:
                for key, _ in selector.select(_TICK_S):
                    worker: Worker = key.data
                    if self._read_answers(worker, what):
                        selector.unregister(worker.out)
                self._check_silence(what)
        return self._done

    def _read_answers(self, worker: Worker, what: str) -> bool:
        """Process the available answers of a worker; True if its run is done."""
        while (answer := worker.poll_answer()) is not None:
            self._last_answer_s = time.monotonic()
            if isinstance(answer, Progress):
                if what == "prefill" and self._stalls[worker].is_stalled(answer):
                    raise TrialError(
                        f"{worker.name}: the prefill stores nothing: {answer.errors} operations "
                        "failed, most likely because the server does not answer in time",
                        "a longer --timeout-ms, or another server",
                    )
                self._ops[worker] = answer.ops
                self._watch.progress(sum(self._ops.values()))
            elif isinstance(answer, Done) and answer.phase == what:
                self._done[worker] = answer
                del self._waiting[worker]
                return True
            else:
                raise worker.error_for_answer(answer, what)
        return False

    def _check_silence(self, what: str) -> None:
        if self._waiting and time.monotonic() - self._last_answer_s > self._watch.silence_timeout_s:
            name = next(iter(self._waiting)).name
            raise TrialError(
                f"{name}: sent no message for {self._watch.silence_timeout_s:g} s of {what}"
            )


def run_together(fleets: Sequence[Fleet], request: Run, watch: RunMonitor) -> list[Done]:
    """Play one phase on several fleets at once, from one instant on. Raises TrialError.

    The phase ends by time: the fleets play different tapes. Returns what each has done.
    """
    start = time.time_ns() + _START_AHEAD_NS
    for fleet in fleets:
        fleet.ask(msgspec.structs.replace(request, start_unix_ns=start))
    workers = [worker for fleet in fleets for worker in fleet.workers]
    done = _Collector(workers, watch).collect(request.phase)
    return [merge([done[worker] for worker in fleet.workers]) for fleet in fleets]


def _ops_of_worker(total: int, number: int, count: int) -> int:
    return total // count + (number < total % count)


def merge(parts: list[Done]) -> Done:
    """Merge results: counts are added, histograms merged; the longest window counts."""
    if len(parts) == 1:
        return parts[0]
    return Done(
        phase=parts[0].phase,
        elapsed_ns=max(part.elapsed_ns for part in parts),
        send_elapsed_ns=max(part.send_elapsed_ns for part in parts),
        operations=merge_kinds([part.operations for part in parts]),
        send_lag=_merge_blobs([part.send_lag for part in parts]),
        # Only known as a whole if every worker reports it.
        generator_lag=_merge_blobs([part.generator_lag for part in parts])
        if all(p.generator_lag for p in parts)
        else None,
        max_in_flight=sum(part.max_in_flight for part in parts),
        queued=sum(part.queued for part in parts),
        unsent=sum(part.unsent for part in parts),
        reconnects=sum(part.reconnects for part in parts),
        cpu_user_ns=sum(part.cpu_user_ns for part in parts),
        cpu_system_ns=sum(part.cpu_system_ns for part in parts),
        barriers=sum(part.barriers for part in parts),
        overflow=sum(part.overflow for part in parts),
        timeline=_merge_timelines([part.timeline for part in parts]),
        sections=_merge_sections([part.sections for part in parts]),
        groups=_merge_groups([part.groups for part in parts]),
        lead_in=_merge_lead_ins([part.lead_in for part in parts]),
        # Each worker reports the whole of a cache that they share; the last to end saw most of it.
        store_bytes=max((p.store_bytes for p in parts if p.store_bytes is not None), default=None),
    )


def merge_slices(parts: list[SliceDone]) -> SliceDone:
    """Merge the workers' parts of a slice: counts are added; the time is the mean of all times.

    A worker that had nothing to play has no time.
    """
    times = [part.elapsed_ns for part in parts if part.ops + part.errors + part.lead_in_ops]
    return SliceDone(
        ops=sum(part.ops for part in parts),
        errors=sum(part.errors for part in parts),
        lead_in_ops=sum(part.lead_in_ops for part in parts),
        elapsed_ns=round(sum(times) / len(times)) if times else 0,
    )


def _merge_sections(parts: list[Sections | None]) -> Sections | None:
    """Merge section by section; None unless all workers have equally many of equal length."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({(p.length_ns, len(p.response)) for p in known}) != 1:
        return None
    return Sections(
        length_ns=known[0].length_ns,
        ok=_sum_columns([part.ok for part in known]),
        response=[
            _merge_blobs(list(blobs)) for blobs in zip(*[p.response for p in known], strict=True)
        ],
    )


def _merge_lead_ins(parts: list[dict[str, Operation] | None]) -> dict[str, Operation] | None:
    known = [part for part in parts if part is not None]
    return merge_kinds(known) if known else None


def _merge_groups(parts: list[Groups | None]) -> Groups | None:
    """Add up the groups; None unless all workers report groups of the same length."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.length for part in known}) != 1:
        return None
    return Groups(
        length=known[0].length,
        ok=sum(part.ok for part in known),
        time=_merge_blobs([part.time for part in known]),
    )


def _merge_timelines(timelines: list[Timeline | None]) -> Timeline | None:
    """Add up the slices; None unless each worker's slice length divides the longest one."""
    known = [timeline for timeline in timelines if timeline is not None]
    if len(known) < len(timelines):
        return None
    longest_ns = max(timeline.slice_ns for timeline in known)
    if any(longest_ns % timeline.slice_ns for timeline in known):
        return None
    return Timeline(
        slice_ns=longest_ns,
        ok=_sum_columns([_coarser(c.ok, longest_ns // c.slice_ns) for c in known]),
        response_ns=_sum_columns(
            [_coarser(c.response_ns, longest_ns // c.slice_ns) for c in known]
        ),
    )


def _coarser(slices: list[int], factor: int) -> list[int]:
    return [sum(slices[at : at + factor]) for at in range(0, len(slices), factor)]


def _sum_columns(columns: list[list[int]]) -> list[int]:
    return [sum(values) for values in zip_longest(*columns, fillvalue=0)]


def merge_kinds(parts: Sequence[dict[str, Operation]]) -> dict[str, Operation]:
    """Merge the results by kind: counts are added, histograms merged."""
    kinds = sorted({kind for part in parts for kind in part})
    return {
        kind: _merge_operations([part[kind] for part in parts if kind in part]) for kind in kinds
    }


def _merge_operations(parts: list[Operation]) -> Operation:
    errors: dict[str, int] = {}
    for part in parts:
        for kind, count in part.errors.items():
            errors[kind] = errors.get(kind, 0) + count
    return Operation(
        attempts=sum(part.attempts for part in parts),
        ok=sum(part.ok for part in parts),
        hits=sum(part.hits for part in parts),
        misses=sum(part.misses for part in parts),
        not_stored=sum(part.not_stored for part in parts),
        wrong_values=sum(part.wrong_values for part in parts),
        errors=errors,
        keys=sum(part.keys for part in parts),
        value_bytes=sum(part.value_bytes for part in parts),
        key_bytes=sum(part.key_bytes for part in parts),
        busy_ns=sum(part.busy_ns for part in parts),
        response=_merge_blobs([part.response for part in parts]),
        service=_merge_blobs([part.service for part in parts]),
    )


def _merge_blobs(blobs: list[str | None]) -> str | None:
    merged = histogram.merge_encoded(blobs)
    return histogram.encode(merged) if merged else None
