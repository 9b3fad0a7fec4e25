"""Cases for the timeline and the sections of a window."""

import numpy as np

from cachemark.checks.conformance.cases import ConformanceCase, claiming
from cachemark.checks.conformance.worker_driver import (
    CaseFailedError,
    WorkerDriver,
    expect,
    expect_equal,
)
from cachemark.endpoints.servers import RunningServer
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import Done, Operation, RunRequest, Timeline
from cachemark.model.protocol_results import Sections

# Workers in interpreted languages take a second to read a tape of the default length.
_TAPE = ("--keys", "20", "--size", "30", "--mix", "get=3,set=1", "--ops", "2000")
_DURATION_MS = 100
_CALLERS = 2
# On a busy machine a window may be empty; then the next is twice as long.
_TRIES = 7


def the_parts_of_a_window_add_up(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Slices and sections count each operation of a window once, with its response time."""
    threads = _CALLERS if driver.can("threads") else 1
    driver.begin(wire, server.addresses, _TAPE, threads=threads, connections=threads)
    # The next window must have nothing of this one.
    driver.play(RunRequest(phase="warmup", duration_ms=_DURATION_MS // 2))
    errors: list[dict[str, int]] = []
    for longer in range(_TRIES):
        done = driver.play(RunRequest(phase="measure", duration_ms=_DURATION_MS << longer))
        if any(operation.ok for operation in done.operations.values()):
            expect(
                done.sections is not None, "no sections, though it has the capability `timeline`"
            )
            check_sums(done)
            _check_slice_times(done, threads)
            return
        errors += [operation.errors for operation in done.operations.values()]
    raise CaseFailedError(f"nothing was done in any window: {errors}")


def a_number_of_operations_has_no_parts(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A window that ends after `ops` has no sections, because its length is not known before."""
    driver.begin(wire, server.addresses, _TAPE)
    done = driver.play(RunRequest(phase="measure", ops=40))
    expect(done.sections is None, f"sections of a window of 40 operations: {done.sections}")


_TIMELINE = claiming("timeline")
CASES = (
    ConformanceCase(the_parts_of_a_window_add_up, _TIMELINE, in_process=True),
    ConformanceCase(a_number_of_operations_has_no_parts, _TIMELINE, in_process=True),
)


def check_sums(done: Done) -> None:
    """Compare timeline and sections with the operations. Raises CaseFailedError."""
    kinds = list(done.operations.values())
    blobs = [kind.response for kind in kinds if kind.response]
    whole = histogram.merge([histogram.decode(blob) for blob in blobs])
    expect(done.timeline is not None, "no timeline, though it has the capability `timeline`")
    if done.timeline is not None:
        _check_timeline_sums(done.timeline, kinds, whole)
    if done.sections is not None:
        _check_section_sums(done.sections, kinds, whole)


def check_end_times(done: Done, gap_ns: int) -> None:
    """Check when operations ended, in an open loop with uniform gaps of `gap_ns`.

    An operation ends at its intended start plus its response time, so the mean end is known. The
    timeline's mean end (from the middles of its slices) may differ by half a slice. The first
    operation may be due at once or after one gap. Raises CaseFailedError.
    """
    timeline, ok = done.timeline, sum(operation.ok for operation in done.operations.values())
    if timeline is None or not ok:
        return
    due_ns = gap_ns * (ok - 1) / 2
    ends_ns = due_ns + sum(timeline.response_ns) / ok
    middles = sum((at + 0.5) * count for at, count in enumerate(timeline.ok))
    timeline_ns = timeline.slice_ns * middles / ok
    near = -timeline.slice_ns <= timeline_ns - ends_ns <= timeline.slice_ns + gap_ns
    expect(
        near,
        f"operations ended at {ends_ns:,.0f} ns on average, in the timeline {timeline_ns:,.0f}",
    )


def _check_slice_times(done: Done, callers: int) -> None:
    """In a closed loop, a slice has response times of at most its length plus a call per caller."""
    timeline = done.timeline
    if timeline is None:
        return
    blobs = [histogram.decode(kind.response) for kind in done.operations.values() if kind.response]
    room_ns = callers * (timeline.slice_ns + histogram.merge(blobs).max())
    expect(max(timeline.response_ns) <= room_ns, "more time was spent in a slice than there is")
    last = max(at for at, ok in enumerate(timeline.ok) if ok)
    expect(last * timeline.slice_ns <= done.elapsed_ns, "a slice after the end of the window")


def _check_timeline_sums(timeline: Timeline, kinds: list[Operation], whole: Histogram) -> None:
    ok = sum(kind.ok for kind in kinds)
    expect_equal(sum(timeline.ok), ok, "the sum of the timeline's ok")
    expect_equal(
        len(timeline.response_ns), len(timeline.ok), "the length of the timeline's response_ns"
    )
    if whole.count != ok:
        return  # the histogram also has timeouts and unsent operations
    mean_ns = sum(timeline.response_ns) / ok
    # A histogram's bucket is at most a thousandth wide.
    near = abs(mean_ns - whole.mean()) <= 0.002 * whole.mean() + 1
    expect(near, f"the timeline's mean response is {mean_ns} ns, the histogram's {whole.mean()}")


def _check_section_sums(sections: Sections, kinds: list[Operation], whole: Histogram) -> None:
    expect_equal(sum(sections.ok), sum(kind.ok for kind in kinds), "the sum of the sections' ok")
    expect_equal(len(sections.ok), len(sections.response), "the number of sections")
    parts = [histogram.decode(blob) for blob in sections.response if blob]
    merged = histogram.merge(parts)
    expect_equal(merged.count, whole.count, "the count of the sections' histograms")
    alike = np.array_equal(np.trim_zeros(merged.counts, "b"), np.trim_zeros(whole.counts, "b"))
    expect(alike, "the sections' histograms are not the window's")
