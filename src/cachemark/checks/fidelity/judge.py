"""Decides whether the times that a client reports are true. Pure.

It compares three times for each percentile: the analytic answer, the injected time in the server's
log, and the client's time. If the injected time is far from the answer, the host is too noisy, and
the case is not judged. If the client's time is far from the injected one, the client is wrong.
"""

from typing import Literal

import msgspec
import numpy as np

from cachemark.checks.fidelity.cases import Case
from cachemark.checks.fidelity.log import Log, NsArray, groups_ns, percentile, rank
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.protocol import Operation
from cachemark.model.protocol_results import Groups

JudgedState = Literal["passed", "failed", "known", "not judged", "not applicable"]
_NS_IN_MS = 1e6
_MIN_TOLERANCE_NS = 20_000
_FLOORS = 3
_SHARE = 0.003
# A histogram reports at most this much above a value. The clocks of some languages count in µs.
_BUCKET = 1 / 1024
_CLOCK_NS = 1_000


class TimeFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The times of client and loopback if the server replies at once, in ns.

    `p50_ns` is their addition to the time in the server's log, `p99_ns` the client's own time.
    """

    p50_ns: int
    p99_ns: int


class PercentileResult(msgspec.Struct, frozen=True, kw_only=True):
    """One percentile: the answer, the injected time, and the client's time, in ns.

    The client's time must be between `injected_ns` (less a histogram bucket) and `injected_ns +
    most_ns`. `slack_ns` widens both limits if the injected time is only known as the answer. If
    the client's time is above, `noise_ns` is the least total delay of operations that explains it.
    """

    percent: float
    answer_ns: int
    injected_ns: int
    measured_ns: int
    most_ns: int
    slack_ns: int = 0
    noise_ns: int = 0

    @property
    def error_ns(self) -> int:
        """Measured minus injected."""
        return self.measured_ns - self.injected_ns

    @property
    def holds(self) -> bool:
        """Whether the client's time is true within the tolerance."""
        below = self.injected_ns * _BUCKET + _CLOCK_NS + self.slack_ns
        return -below <= self.error_ns <= self.most_ns + self.slack_ns


class CountResult(msgspec.Struct, frozen=True, kw_only=True):
    """A count that must be exact: the server's, and the client's."""

    name: str
    injected: int
    measured: int


class FidelityResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one case on one client. `why` explains any state but `passed`.

    State `known`: a failure that cases.toml lists. `stalls`: answered reads that the client may
    have counted as timed out, because it or its host stood still (`log.stalls`).
    """

    client: str
    case: str
    state: JudgedState
    why: str = ""
    wire: str = ""
    lines: list[PercentileResult] = []
    counts: list[CountResult] = []
    floor: TimeFloor | None = None
    stalls: int = 0

    @property
    def may_be_noise(self) -> bool:
        """Whether only times are wrong, or counts by answers that came after a stall."""
        excess = {one.name: one.measured - one.injected for one in self.counts}
        late, answered = excess.pop("lost", 0), excess.pop("answered", 0)
        # A read that timed out takes its group with it.
        cut = -excess.pop("groups", 0)
        if self.state != "failed" or any(excess.values()) or not 0 <= cut <= late:
            return False
        if late == answered == 0:
            return bool(self.lines)
        return late == -answered and 0 < late <= self.stalls


def tolerance_ns(floor: TimeFloor, answer_ns: float) -> int:
    """The tolerance of a client's time: max(20 µs, 3 · the floor's p99, 0.3 % of the answer)."""
    return round(max(_MIN_TOLERANCE_NS, _FLOORS * floor.p99_ns, _SHARE * answer_ns))


def lines(
    answers_ms: dict[float, float], floor: TimeFloor, injected: NsArray, measured: Histogram
) -> list[PercentileResult]:
    """Compare each percentile of the answer with the injected and the measured time."""
    return [
        line(percent, answer_ms, floor, injected, measured.percentile(percent))
        for percent, answer_ms in answers_ms.items()
    ]


def line(
    percent: float, answer_ms: float, floor: TimeFloor, injected: NsArray, measured_ns: int
) -> PercentileResult:
    """Compare one percentile; `injected` is sorted."""
    most_ns = floor.p50_ns + tolerance_ns(floor, answer_ms * _NS_IN_MS)
    return PercentileResult(
        percent=percent,
        answer_ns=round(answer_ms * _NS_IN_MS),
        injected_ns=percentile(injected, percent),
        measured_ns=measured_ns,
        most_ns=most_ns,
        noise_ns=_noise_ns(injected, percent, measured_ns - most_ns),
    )


def _noise_ns(injected: NsArray, percent: float, limit_ns: int) -> int:
    """The least total delay of operations that moves a percentile above a limit.

    All operations from the percentile's rank on must be above the limit.
    """
    moved = injected[rank(len(injected), percent) - 1 :]
    return int(np.maximum(limit_ns - moved, 0).sum())


def counts(log: Log, reported: Operation) -> list[CountResult]:
    """Compare the server's counts of reads with those that the client reports."""
    answered, wrong = log.count("answered"), log.count("wrong")
    # Reads that were received but not answered. A client may also fail before it sends a read.
    lost = len(log.fate) - answered - wrong
    unasked = _unasked(log, reported)
    return [
        CountResult(name="reads", injected=len(log.fate) + unasked, measured=reported.attempts),
        CountResult(name="answered", injected=answered, measured=reported.ok),
        CountResult(name="wrong values", injected=wrong, measured=reported.wrong_values),
        CountResult(name="lost", injected=lost + unasked, measured=sum(reported.errors.values())),
    ]


def group_counts(log: Log, reported: Operation, groups: Groups) -> list[CountResult]:
    """Compare the server's count of groups with the client's; empty if the log cannot show it.

    If the client never sent a read, the log does not show which group lacks it.
    """
    if _unasked(log, reported):
        return []
    injected = len(groups_ns(log, groups.length))
    timed = histogram.decode(groups.time).count if groups.time else 0
    return [
        CountResult(name="groups", injected=injected, measured=groups.ok),
        CountResult(name="times of groups", injected=groups.ok, measured=timed),
    ]


def _unasked(log: Log, reported: Operation) -> int:
    return max(0, reported.attempts - len(log.fate))


def judged(
    case: Case,
    results: list[PercentileResult],
    counted: list[CountResult],
    run_delay_ns: int,
    late_ns: int = 0,
) -> tuple[JudgedState, str]:
    """The state of a case, and the reason. Counts come first: they do not depend on the host.

    `run_delay_ns` is the time that the client's processes were runnable without a CPU. An open
    loop's window may have started `late_ns` earlier than assumed. A percentile that is too high
    counts against the client only if neither explains it.
    """
    if why := miscounted(counted):
        return "failed", why
    if why := _unfaulted(case, counted) or _noise(case, results):
        return "not judged", why
    off = [line for line in results if not line.holds]
    if off and all(0 < line.noise_ns <= run_delay_ns for line in off):
        waited = milliseconds(run_delay_ns)
        return "not judged", f"the client had no CPU for {waited} ms, which explains it"
    if off and all(0 < line.error_ns <= line.most_ns + late_ns for line in off):
        late = milliseconds(late_ns)
        return "not judged", f"the earliest read came {late} ms after the request for the window"
    reasons = (
        f"{percentile_name(line.percent)} is off by {milliseconds(line.error_ns)} ms"
        for line in off
    )
    return ("failed" if off else "passed"), "; ".join(reasons)


def miscounted(counted: list[CountResult]) -> str:
    """The wrong counts as text; empty if all are right."""
    wrong = [count for count in counted if count.injected != count.measured]
    return "; ".join(f"{c.name}: {c.measured:,}, really {c.injected:,}" for c in wrong)


def _unfaulted(case: Case, counted: list[CountResult]) -> str:
    """Why too few faults were injected; empty if enough were."""
    real = {count.name: count.injected for count in counted}
    if real.get("wrong values", 0) < case.faults.wrong or real.get("lost", 0) < case.faults.lost:
        return f"the server could inject fewer faults than the case needs: {real}"
    return ""


def _noise(case: Case, results: list[PercentileResult]) -> str:
    """Why the host is too noisy to judge; empty if it is not."""
    for line in results:
        tolerance = line.most_ns
        if tolerance > case.tell_apart_ms * _NS_IN_MS:
            apart = f"{case.tell_apart_ms:g} ms"
            return f"by its floor a client may be {milliseconds(tolerance)} ms off, over {apart}"
        allowed = case.slack_ms * _NS_IN_MS + (0 if case.load.closed else tolerance)
        if abs(line.injected_ns - line.answer_ns) > allowed:
            real, answer = milliseconds(line.injected_ns), milliseconds(line.answer_ns)
            return (
                f"injected {percentile_name(line.percent)} is {real} ms, the answer is {answer} ms"
            )
    return ""


def percentile_name(percent: float) -> str:
    """Such as `p99.5`, or `max`."""
    return "max" if percent == 100 else f"p{percent:g}"


def milliseconds(ns: float) -> str:
    """A time such as `0.031`, in ms with µs resolution."""
    return f"{ns / _NS_IN_MS:.3f}"
