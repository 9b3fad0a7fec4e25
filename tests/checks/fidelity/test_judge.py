"""The judgement over real sockets, on made-up logs and clients: no clock, no socket."""

import tomllib

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from cachemark.checks.fidelity import judge
from cachemark.checks.fidelity.cases import Case, CaseLoad, Faults, KnownMiss, cases, known_failures
from cachemark.checks.fidelity.judge import CountResult, FidelityResult, TimeFloor
from cachemark.checks.fidelity.log import (
    Log,
    groups_ns,
    lateness_ns,
    percentile,
    responses_ns,
    services_ns,
    stalls,
    start_late_ns,
)
from cachemark.checks.fidelity.play import mark_known, retry_until_judged
from cachemark.model import histogram
from cachemark.model.protocol import Operation
from cachemark.model.protocol_results import Groups
from tests.builders.histograms import from_values

MS = 1_000_000
FLOOR = TimeFloor(p50_ns=50_000, p99_ns=100_000)
# One stall of 100 ms in each second, 250 arrivals a second.
STALL = cases()["stall, open"]
EXACT = [CountResult(name="reads", injected=1000, measured=1000)]


def log_of(received_ns: list[int], sent_ns: list[int], fate: str = "answered") -> Log:
    """A log of reads that were sent when they were due."""
    count = len(received_ns)
    return Log(
        received_ns=received_ns,
        due_ns=sent_ns,
        first_ns=sent_ns,
        sent_ns=sent_ns,
        connection=[1] * count,
        fate=[fate] * count,
    )


def stall_truth() -> list[int]:
    """Response times by the script: each arrival waits for the end of its stall."""
    arrivals = [i * 4 * MS for i in range(1000)]
    return sorted(max(0, 100 * MS - at % (1000 * MS)) for at in arrivals)


def judged(
    case: Case, injected: list[int], measured: list[int], run_delay_ns: int = 0
) -> tuple[str, str]:
    told = from_values([max(1, each) for each in measured])
    found = judge.lines(case.answer_ms, FLOOR, np.array(sorted(injected)), told)
    return judge.judged(case, found, EXACT, run_delay_ns)


def test_the_answers_follow_from_the_formulas() -> None:
    """Times of the stall, by playing it; times of laws, by the inverse of each law."""
    stall = np.array(stall_truth())
    for percent, answer_ms in STALL.answer_ms.items():
        assert percentile(stall, percent) / MS == pytest.approx(answer_ms, abs=4)
    for percent, answer_ms in cases()["exponential"].answer_ms.items():
        assert answer_ms == pytest.approx(-2 * np.log(1 - percent / 100), rel=1e-3)
    z = {50: 0, 90: 1.28155, 95: 1.64485}
    for percent, answer_ms in cases()["lognormal"].answer_ms.items():
        assert answer_ms == pytest.approx(2 * np.exp(0.5 * z[round(percent)]), rel=1e-3)
    overload = cases()["overload"]
    for percent, answer_ms in overload.answer_ms.items():
        assert answer_ms == pytest.approx(4 + 0.6 * percent / 100 * overload.load.duration_ms)


def crommelin(t: float, rho: float) -> float:
    """P(W <= t) of M/D/1, t in services."""
    terms = [
        (rho * (k - t)) ** k / float(np.prod(range(1, k + 1), dtype=float)) * np.exp(rho * (t - k))
        for k in range(int(t) + 1)
    ]
    return (1 - rho) * sum(terms)


def test_the_queue_of_poisson_arrivals_follows_crommelin() -> None:
    for percent, answer_ms in cases()["M/D/1"].answer_ms.items():
        assert crommelin(answer_ms / 4 - 1, 0.5) == pytest.approx(percent / 100, abs=1e-3)


def test_an_honest_client_passes() -> None:
    truth = stall_truth()
    assert judged(STALL, truth, [each + 60_000 for each in truth]) == ("passed", "")


def test_a_client_that_measures_from_the_send_fails() -> None:
    """Coordinated omission: it says nothing of the arrivals that it did not send."""
    state, why = judged(STALL, stall_truth(), [60_000] * 1000, run_delay_ns=10**12)
    assert state == "failed"
    assert "p99 is off by -89" in why or "p99 is off by -9" in why


def test_a_noisy_host_is_never_a_pass() -> None:
    """Injected far from the answer: not judged, though client and server agree."""
    noisy = [each + 30 * MS for each in stall_truth()]
    state, why = judged(STALL, noisy, noisy)
    assert state == "not judged"
    assert "the answer is 50.000 ms" in why


def test_a_wide_tolerance_is_no_pass_either() -> None:
    case = cases()["constant"]
    slow = TimeFloor(p50_ns=50_000, p99_ns=MS)
    times = np.array([2 * MS] * 500)
    found = judge.lines(case.answer_ms, slow, times, from_values([2 * MS] * 500))
    assert judge.judged(case, found, EXACT, 0)[0] == "not judged"


def test_a_late_first_read_does_not_judge_its_window() -> None:
    """All reads came 7 ms after they were due, so that the window seems to begin 7 ms later."""
    due = np.arange(0, 1000 * MS, 10 * MS)
    log = log_of([7 * MS + int(at) for at in due], [9 * MS + int(at) for at in due])
    assert set(responses_ns(log, due)) == {2 * MS}
    late_ns = start_late_ns(log, due, asked_ns=-MS)
    assert late_ns == 8 * MS
    case = msgspec.structs.replace(STALL, answer_ms={50: 2, 99: 2}, tell_apart_ms=5)
    honest = from_values([9 * MS] * 100)
    found = judge.lines(case.answer_ms, FLOOR, responses_ns(log, due), honest)
    assert judge.judged(case, found, EXACT, 0, late_ns)[0] == "not judged"
    assert judge.judged(case, found, EXACT, 0, 6 * MS)[0] == "failed"
    low = judge.lines(case.answer_ms, FLOOR, responses_ns(log, due), from_values([MS] * 100))
    assert judge.judged(case, low, EXACT, 0, late_ns)[0] == "failed"


def test_a_client_that_had_no_cpu_is_not_blamed() -> None:
    """30 of 500 operations 10 ms late: 26 of them are enough to move p95, 8 ms each."""
    case = Case(
        name="c",
        about="",
        script="",
        load=CaseLoad(ops=500),
        answer_ms={95: 2},
        slack_ms=0.1,
        tell_apart_ms=1,
    )
    truth = [2 * MS] * 500
    measured = [2 * MS] * 470 + [10 * MS] * 30
    line = judge.line(95, 2, FLOOR, np.array(truth), 10 * MS)
    assert line.noise_ns == pytest.approx(26 * (8 * MS - line.most_ns))
    assert (
        judged(case, truth, measured, run_delay_ns=line.noise_ns + 26 * 10_000)[0] == "not judged"
    )
    assert judged(case, truth, measured, run_delay_ns=line.noise_ns // 2)[0] == "failed"


def test_an_open_loops_truth_is_counted_from_the_schedule() -> None:
    """Sent late by the client or not: what counts is when it was due."""
    intended = np.array([0, 4 * MS, 8 * MS])
    began = 10**12
    # The second one was sent 3 ms late, each was answered 1 ms after it came.
    log = log_of(
        [began, began + 7 * MS, began + 8 * MS], [began + MS, began + 8 * MS, began + 9 * MS]
    )
    assert responses_ns(log, intended).tolist() == [MS, MS, 4 * MS]
    assert services_ns(log).tolist() == [MS] * 3
    assert lateness_ns(log).tolist() == [0] * 3


def test_counts_are_exact() -> None:
    """A read that was asked again, or a value that was not looked at, fails whatever the host."""
    log = log_of([0] * 8, [1] * 8)
    log.fate[6:] = ["wrong", "dropped"]
    case = Case(name="c", about="", script="", load=CaseLoad(ops=8), faults=Faults(lost=1, wrong=1))
    honest = Operation(attempts=8, ok=6, wrong_values=1, errors={"timeout": 1})
    assert judge.judged(case, [], judge.counts(log, honest), 0) == ("passed", "")
    blind = Operation(attempts=8, ok=7, errors={"timeout": 1})
    state, why = judge.judged(case, [], judge.counts(log, blind), 0)
    assert (state, "wrong values: 0, really 1" in why) == ("failed", True)
    again = Operation(attempts=7, ok=6, wrong_values=1)
    assert "reads: 7, really 8" in judge.judged(case, [], judge.counts(log, again), 0)[1]
    unasked = Operation(attempts=9, ok=6, wrong_values=1, errors={"timeout": 1, "connection": 1})
    assert judge.judged(case, [], judge.counts(log, unasked), 0)[0] == "passed"
    harmless = log_of([0] * 8, [1] * 8)
    all_ok = Operation(attempts=8, ok=8)
    assert judge.judged(case, [], judge.counts(harmless, all_ok), 0)[0] == "not judged"


def test_only_what_may_be_noise_is_tried_again() -> None:
    def run(states: list[FidelityResult]) -> tuple[str, int]:
        left = iter(states)
        return retry_until_judged(lambda: next(left), len(states)).state, len(list(left))

    line = judge.line(50, 2, FLOOR, np.array([2 * MS]), 9 * MS)
    off = FidelityResult(client="c", case="c", state="failed", lines=[line], counts=EXACT)
    unjudged = FidelityResult(client="c", case="c", state="not judged")
    passed = FidelityResult(client="c", case="c", state="passed")
    wrong = [CountResult(name="reads", injected=1, measured=2)]
    broken = FidelityResult(client="c", case="c", state="failed", lines=[line], counts=wrong)
    assert run([unjudged, off, passed]) == ("passed", 0)
    assert run([off, off, off]) == ("failed", 0)
    assert run([broken, passed]) == ("failed", 1)
    late = [
        CountResult(name="answered", injected=3, measured=2),
        CountResult(name="lost", injected=1, measured=2),
    ]
    stalled = FidelityResult(client="c", case="c", state="failed", counts=late, stalls=1)
    assert run([stalled, passed]) == ("passed", 0)
    assert run([stalled, stalled]) == ("failed", 0)
    assert run([replace(stalled, stalls=0), passed]) == ("failed", 1)
    assert run([passed, unjudged]) == ("passed", 1)


def test_a_stall_is_a_time_out_beside_an_answered_read() -> None:
    second = 1000 * MS
    at_once = log_of([0, second, 2 * second], [1, second + 1, 2 * second + 1])
    assert stalls(at_once, 3 * second) == 0
    assert stalls(at_once, second) == 3
    half = second // 2
    # The second read is lost, so the third one begins up to a time-out after it.
    for wait, count in ((3 * half, 0), (4 * half + 10, 1)):
        lost = log_of([0, 10, wait], [5, 0, wait + 5])
        lost.fate[1] = "dropped"
        assert stalls(lost, second) == count
    # Half before it was received, half after it was answered.
    assert stalls(log_of([0, half + 5, second + 5], [5, half + 6, second + 6]), second) == 1
    before_sending = log_of([0, 10, 20], [5, 15, 3 * second])
    assert stalls(before_sending, second) == 1
    assert stalls(log_of([], []), second) == 0


def test_known_failures_are_told_as_such_and_stay_true() -> None:
    known = [KnownMiss(client="*/x", case="c", reason="its way")]
    failed = FidelityResult(client="a/x", case="c", state="failed", why="off")
    assert mark_known("a/x", failed, known).state == "known"
    assert mark_known("a/y", failed, known).state == "failed"
    passed = FidelityResult(client="a/x", case="c", state="passed")
    assert mark_known("a/x", passed, known).state == "failed"
    race = [KnownMiss(client="a/x", case="c", reason="its way", sometimes=True)]
    assert mark_known("a/x", passed, race).state == "passed"
    assert {one.case for one in known_failures()} <= set(cases())


def groups_log(case: Case, lost: tuple[int, ...] = ()) -> Log:
    """One read after the other, 0.1 ms apart, with the delays of a script's list."""
    delays_ms: list[int] = tomllib.loads(case.script)["delay"]["ms"]
    received_ns, sent_ns, now_ns = [], [], 10**12
    for number in range(case.load.ops):
        received_ns.append(now_ns)
        now_ns += delays_ms[number % len(delays_ms)] * MS
        sent_ns.append(now_ns)
        now_ns += MS // 10
    log = log_of(received_ns, sent_ns)
    for number in lost:
        log.fate[number] = "dropped"
    return log


def reported_groups(log: Log, length: int, bug: str) -> Groups:
    """The report of a client whose reads take 0.03 ms to the server, and their answers as long."""
    times: list[int] = []
    way_ns = 30_000
    for first in range(0, len(log.fate) - length + 1, length):
        last = first + length - 1
        begin_ns = log.received_ns[first + (bug == "begins late")] - way_ns
        end_ns = log.sent_ns[last - (bug == "ends early")] + way_ns
        right = set(log.fate[first : last + 1]) == {"answered"}
        if right or bug == "despite a failure":
            times += [end_ns - begin_ns] * (2 if bug == "twice" else 1)
    blob = histogram.encode(from_values(times))
    return Groups(length=length, ok=len(times), time=blob)


def judged_groups(bug: str, lost: tuple[int, ...] = ()) -> tuple[str, str]:
    case = cases()["groups"]
    log = groups_log(case, lost)
    reported = Operation(
        attempts=case.load.ops, ok=case.load.ops - len(lost), errors={"timeout": len(lost)}
    )
    groups = reported_groups(log, case.load.group, bug)
    counted = judge.counts(log, reported) + judge.group_counts(log, reported, groups)
    injected = groups_ns(log, case.load.group)
    told = histogram.merge_encoded([groups.time])
    assert told is not None
    found = judge.lines(case.group_answer_ms, FLOOR, injected, told)
    return judge.judged(case, found, counted, 0)


def test_the_times_of_groups_are_those_of_the_log() -> None:
    assert judged_groups("") == ("passed", "")
    assert judged_groups("", lost=(7,)) == ("passed", "")


@pytest.mark.parametrize(
    ("bug", "lost", "said"),
    [
        ("ends early", (), "p97 is off by -16"),
        ("begins late", (), "p50 is off by -6"),
        ("twice", (), "groups: 100, really 50"),
        ("despite a failure", (7,), "groups: 50, really 49"),
    ],
)
def test_a_client_with_wrong_groups_fails(bug: str, lost: tuple[int, ...], said: str) -> None:
    state, why = judged_groups(bug, lost)
    assert (state, said in why) == ("failed", True), why


def test_a_group_that_a_stall_cut_is_tried_again() -> None:
    """A read that timed out in a stall takes its group with it; more groups than reads never."""

    def stalled(groups: int) -> FidelityResult:
        counts = [
            CountResult(name="answered", injected=3, measured=2),
            CountResult(name="lost", injected=0, measured=1),
            CountResult(name="groups", injected=1, measured=groups),
        ]
        return FidelityResult(client="c", case="c", state="failed", counts=counts, stalls=1)

    assert stalled(0).may_be_noise
    assert stalled(1).may_be_noise
    assert not stalled(2).may_be_noise
    assert not stalled(-1).may_be_noise
