"""The window of a cell: the calls, the fault in the middle of them, samples, and when it may end.

The call log says later how each call ended; until then there are the worker's progress and the
counters of the server.
"""

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from cachemark.analysis.resilience.figures import Phases, ProcessSample, Samples
from cachemark.endpoints.servers.running import merge_process_use, process_use
from cachemark.endpoints.worker import Worker
from cachemark.host.cpu_meter import QueueMeter, family
from cachemark.host.noise import Pauses
from cachemark.model.faults import Fault
from cachemark.model.protocol import Failure, Progress, RunRequest, Stop, WorkerAnswer
from cachemark.runs.resilience.injection import Injection

# All keys are read once in 2.5 s: a value that was stored elsewhere shows in this time.
STEADY_MS = 3000
_FEWEST_OPS = 100
_START_AHEAD_NS = 300_000_000
# After the last call's time-out a worker has this long to notice that a call does not return.
_LOST_S = 5.0
_SLACK_S = 10.0
# A wait is as long as this at once: a machine that pauses shows as a late end.
_WAIT_NS = 100_000_000
_MS = 1_000_000


class FaultWindow:
    """Plays the window of one cell; the attributes are known after `play`."""

    def __init__(self, worker: Worker, fault: Fault, injected: Injection, timeout_ms: int) -> None:
        self._worker, self._injected = worker, injected
        self.fault = fault
        self._timeout_s = timeout_ms / 1e3
        self._ended: WorkerAnswer | None = None
        self._progress: Progress | None = None
        self._late = Pauses()
        self.connections = self.server_misses = self.waited_ns = 0
        self.fault_began = False

    @property
    def longest_pause_ns(self) -> int:
        """The delay with which this process woke up."""
        return self._late.longest_ns or 0

    def play(self, calls_path: Path) -> WorkerAnswer | None:
        """Play; the answer that ended the run, None if there was none in time.

        Raises TrialError if the worker or the server fails.
        """
        fault, injected = self.fault, self._injected
        start_ns = time.monotonic_ns() + _START_AHEAD_NS
        self._worker.send(
            RunRequest(
                phase="measure",
                start_unix_ns=time.time_ns() + _START_AHEAD_NS,
                duration_ms=fault.longest_ms,
                calls=str(calls_path),
                gives_up=fault.gives_up,
            )
        )
        self._wait_until(start_ns)
        begin = sample(self._worker.pid)
        self._wait_until(start_ns + fault.before_ms * _MS)
        before, opened, waits = sample(self._worker.pid), injected.connections(), self._waits_ns()
        self.fault_began = True
        fault_ns = injected.begin()
        try:
            self._wait_until(fault_ns + fault.during_ms * _MS)
            fault_end = sample(self._worker.pid)
        finally:
            fault_end_ns = injected.end()
        self._wait_for_recovery(fault_end_ns, start_ns + fault.longest_ms * _MS)
        if self._ended is None:
            self._worker.send(Stop())
        end_ns = time.monotonic_ns()
        after = sample(self._worker.pid)
        self.waited_ns = sum(ns - waits.get(pid, 0) for pid, ns in self._waits_ns().items())
        self.connections = injected.connections() - opened
        self.samples = Samples(begin=begin, before=before, fault_end=fault_end, after=after)
        self.phases = Phases(
            start_ns=start_ns, fault_ns=fault_ns, fault_end_ns=fault_end_ns, end_ns=end_ns
        )
        self._wait_until(end_ns + round((4 * self._timeout_s + _LOST_S + _SLACK_S) * 1e9))
        self.server_misses = injected.misses()
        return self._ended

    def _waits_ns(self) -> dict[int, int]:
        pids = [self._worker.pid, *self._injected.pids()]
        return {pid: sum(QueueMeter([pid]).read_ns().values()) for pid in pids}

    def _wait_for_recovery(self, fault_end_ns: int, last_ns: int) -> None:
        """Wait until the client has recovered, for as long as each client plays, or until then."""
        looks: list[Look] = []
        self._progress = None
        while self._ended is None and time.monotonic_ns() < last_ns:
            self._wait_once(last_ns)
            if (told := self._progress) is None:
                continue
            self._progress = None
            answered = self._injected.answered()
            looks.append(Look(time.monotonic_ns(), told.ops, told.errors, answered))
            if may_end(looks, fault_end_ns, self.fault.after_ms, self._injected.share):
                return

    def _wait_until(self, instant_ns: int) -> None:
        while self._ended is None and time.monotonic_ns() < instant_ns:
            self._wait_once(instant_ns)

    def _wait_once(self, instant_ns: int) -> None:
        """Wait a short time, at most until an instant, or for the worker's next answer.

        Raises TrialError if the run ended with an error that is not the client's.
        """
        begin_ns = time.monotonic_ns()
        wait_ns = max(0, min(_WAIT_NS, instant_ns - begin_ns))
        answer = self._worker.receive(wait_ns / 1e9)
        if answer is None:
            self._late.slept(wait_ns, time.monotonic_ns() - begin_ns)
        elif isinstance(answer, Progress):
            self._progress = answer
        else:
            self._ended = answer
        # The kind `client` says that a call does not return: this is a result, not an error.
        if isinstance(self._ended, Failure) and self._ended.kind != "client":
            raise self._worker.error_for_answer(self._ended, "run")


def sample(pid: int, root: Path = Path("/proc")) -> ProcessSample:
    """The use of a process and its descendants now. Ended processes count as nothing."""
    pids = family(pid)
    use = merge_process_use([use for each in pids if (use := process_use(each)) is not None])
    return ProcessSample(
        cpu_ns=use.cpu_ns,
        threads=use.threads,
        descriptors=sum(_descriptors(root / str(each) / "fd") for each in pids),
        rss_bytes=use.rss_bytes,
    )


def _descriptors(folder: Path) -> int:
    try:
        return len(list(folder.iterdir()))
    except OSError:
        return 0


class Look(NamedTuple):
    """A worker's progress, and how many calls the server with the fault has executed by then.

    `ops` and `errors` count since the start of the run.
    """

    at_ns: int
    ops: int
    errors: int
    answered: int


def is_healthy(before: Look, now: Look, share: float) -> bool:
    """Whether all calls between two looks were answered by the server.

    `share` is the part of the calls that it has to see: a failure that looks like a miss is a call
    that reached no server.
    """
    ops = now.ops - before.ops
    return (
        now.errors == before.errors
        and ops >= _FEWEST_OPS
        and now.answered - before.answered >= share * ops
    )


def healthy_since_ns(looks: Sequence[Look], share: float) -> int | None:
    """Since when every look has been a healthy one; None if the last was not."""
    since: int | None = None
    for before, now in pairwise(looks):
        if not is_healthy(before, now, share):
            since = None
        elif since is None:
            since = before.at_ns
    return since


def may_end(looks: Sequence[Look], fault_end_ns: int, after_ms: int, share: float) -> bool:
    """Whether a client has recovered and has since then played long enough.

    `looks` are those after the fault, `after_ms` is how long each client plays after it.
    """
    since_ns = healthy_since_ns(looks, share)
    if since_ns is None:
        return False
    now_ns = looks[-1].at_ns
    return now_ns - since_ns >= STEADY_MS * _MS and now_ns - fault_end_ns >= after_ms * _MS
