"""Single percentiles of open loops are withheld; the trial counts, and the others are shown.

Each fault of an earlier version is simulated: its rule rejected good trials, or missed bad ones.
"""

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from cachemark.analysis.statistics import FIGURES, figures_of, showing, summarise
from cachemark.analysis.verdict import TrialVerdict, judge
from cachemark.model import histogram
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats
from tests.builders.histograms import from_values
from tests.builders.outcomes import measured

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
Times = NDArray[np.float64]


def blob(times_ns: Times) -> str:
    return histogram.encode(from_values([max(1, round(ns)) for ns in times_ns]))


def operation(times_ns: Times) -> Operation:
    count, encoded = len(times_ns), blob(times_ns)
    return Operation(attempts=count, ok=count, response=encoded, service=encoded)


def judged(kinds: dict[str, Times], lag_ns: Times, rate: float | None = None) -> TrialVerdict:
    return judge(
        window(kinds, lag_ns),
        workload=Workload(name="w", mix=dict.fromkeys(kinds, 1)),
        load=Load(name="l", schedule="poisson", rate=rate),
        before=ServerStats(),
        after=ServerStats(),
    )


def window(kinds: dict[str, Times], lag_ns: Times) -> Done:
    return Done(
        phase="measure",
        elapsed_ns=SECOND,
        send_elapsed_ns=SECOND,
        operations={kind: operation(times_ns) for kind, times_ns in kinds.items()},
        send_lag=blob(lag_ns),
        generator_lag=blob(lag_ns),
    )


def stalled(draw: np.random.Generator, seconds: int) -> tuple[Times, Times]:
    """Poisson arrivals at 400/s, and their response times where a server stalls 100 ms a second."""
    due = np.cumsum(draw.exponential(SECOND / 400, 400 * seconds))
    phase = due % SECOND
    return due, np.where(phase < 100 * MS, 100 * MS - phase, 0) + 50 * US


def test_a_late_generator_withholds_the_percentiles_it_may_move() -> None:
    """0.15 % of the operations are sent 31 ms late, which made the whole trial INVALID.

    In a stall of 100 ms a second, that cannot move the tail by more than 1.5 ms and a bit. But p90
    lies on the edge of the stalls.
    """
    draw = np.random.default_rng(1)
    _, true = stalled(draw, 50)
    late = draw.random(len(true)) < 0.0015
    lag = np.where(late, 31 * MS, 10 * US)
    judgement = judged({"get": true + lag}, lag, rate=400)
    assert judgement.verdict == "VALID"
    assert [(each.kind, each.percent) for each in judgement.withheld] == [("", 90.0)]
    shown = {bound.percent: bound for bound in judgement.lag_bounds}
    assert set(shown) == {50.0, 99.0, 99.9}
    for percent, bound in shown.items():
        # The truth lies where the bound says.
        truth = histogram.decode(blob(true)).percentile(percent)
        assert bound.ns - bound.moved_ns <= truth * (1 + 1 / 1024) <= bound.ns * (1 + 1 / 512)
        assert bound.moved_ns <= max(100 * US, 0.05 * bound.ns)
    assert shown[99.0].ns == pytest.approx(90 * MS, rel=0.05)


def test_a_tail_that_is_the_generators_own_is_withheld() -> None:
    """The server takes 1 ms: p99.9 is the client's lag of 31 ms, the others are the server's."""
    lag = np.full(20_000, 10.0 * US)
    lag[:30] = 31 * MS
    judgement = judged({"get": lag + MS}, lag)
    assert judgement.verdict == "VALID"
    assert [(each.kind, each.percent) for each in judgement.withheld] == [("", 99.9)]
    assert {bound.percent for bound in judgement.lag_bounds} == {50.0, 90.0, 99.0}
    assert "it can have moved p99.9 by" in judgement.findings[-1].text


@pytest.mark.parametrize("seed", range(20))
def test_a_bound_holds_whichever_operations_were_late(seed: int) -> None:
    """Also where just those are late that were due in a stall, or just the quick ones."""
    draw = np.random.default_rng(seed)
    _, true = stalled(draw, 10)
    slowest = np.argsort(true)[:: -1 if seed % 2 else 1]
    lag = np.full(len(true), 5.0 * US)
    lag[slowest[: draw.integers(1, 60)]] = draw.exponential(20 * MS)
    judgement = judged({"get": true + lag}, lag, rate=400)
    for each in (*judgement.lag_bounds, *judgement.withheld):
        truth = histogram.decode(blob(true)).percentile(each.percent)
        assert each.ns - each.moved_ns <= truth * (1 + 1 / 1024)


def test_a_trial_of_which_nothing_is_left_is_invalid() -> None:
    lag = np.full(4000, 20.0 * MS)
    judgement = judged({"get": lag + 10 * MS}, lag)
    assert judgement.verdict == "INVALID"
    assert "the client sent too late" in judgement.reasons[0]


def test_rare_late_operations_do_not_reject_a_short_window() -> None:
    """A true p99.9 of the lag of 10 µs. By the p99.9 of 400 operations, 17 % were INVALID."""
    draw = np.random.default_rng(7)
    rejected = 0
    for _ in range(60):
        response = 200 * US * np.exp(draw.normal(0, 0.3, 400))
        lag = np.where(draw.random(400) < 0.0005, 500 * US, 5.0 * US)
        judgement = judged({"get": response + lag}, lag)
        rejected += judgement.verdict != "VALID" or bool(judgement.withheld)
    assert rejected <= 2


def test_one_slow_operation_of_another_kind_is_no_overload() -> None:
    """One flush of 110 ms after 9,999 gets: the median over all operations did not grow."""
    lag = np.full(10_000, 1.0 * US)
    kinds = {"get": np.full(9_999, 100.0 * US), "flush": np.array([110.0 * MS])}
    late = msgspec.structs.replace(window(kinds, lag), elapsed_ns=SECOND + 110 * MS)
    judgement = judge(
        late,
        workload=Workload(name="w", mix={"get": 1, "flush": 1}),
        load=Load(name="l", schedule="uniform", rate=10_000),
        before=ServerStats(),
        after=ServerStats(),
    )
    assert judgement.verdict == "VALID"


def test_a_slow_kind_does_not_hide_a_quick_ones_lag() -> None:
    """Ten msets of 100 ms raise the limit of the lag; the gets of 4.3 ms are nearly all lag."""
    lag = np.full(10_010, 1.0 * US)
    lag[:60] = 4 * MS
    gets = np.full(10_000, 300.0 * US)
    gets[:60] += 4 * MS
    judgement = judged({"get": gets, "mset": np.full(10, 100.0 * MS)}, lag)
    assert ("get", 99.9) in {(each.kind, each.percent) for each in judgement.withheld}


def trial(block: int, times_ns: Times, lag_ns: Times, *, rate: float = 400) -> Outcome:
    """A trial as it is stored, with its verdict."""
    base, judgement = measured("a", block, 1000), judged({"get": times_ns}, lag_ns, rate)
    return msgspec.structs.replace(
        base,
        load=Load(name="one", schedule="poisson", rate=rate),
        measure=window({"get": times_ns}, lag_ns),
        verdict=judgement.verdict,
        withheld=judgement.withheld,
        lag_bounds=judgement.lag_bounds,
        findings=judgement.findings,
    )


def test_a_figure_is_made_of_the_trials_that_show_it() -> None:
    draw = np.random.default_rng(5)
    trials: list[Outcome] = []
    for block in range(4):
        _, true = stalled(draw, 20)
        lag = np.full(len(true), 5.0 * US)
        if block == 0:
            lag[:40] = 40 * MS
        trials.append(trial(block, true + lag, lag))
    figure = FIGURES["p99.9"]
    assert [t.trial.block for t in showing(trials, figure)] == [1, 2, 3]
    assert len(figures_of(showing(trials, figure), figure) or []) == 3
    (summary,) = summarise(trials)
    assert summary.valid == 4
    assert summary.total is not None
    assert summary.total.response is not None
    assert summary.total.response.percentiles[99.9] is not None
    assert summary.total.response.withheld == []


def timed_out(count: int, timeouts: int) -> Operation:
    """Gets of 1 ms, some of which timed out after 300 ms."""
    times = blob(np.concatenate([np.full(count - timeouts, 1.0 * MS), np.full(timeouts, 300 * MS)]))
    return Operation(
        attempts=count,
        ok=count - timeouts,
        errors={"timeout": timeouts},
        response=times,
        service=times,
    )


@pytest.mark.parametrize("timeouts", [99, 101, 500])
def test_an_open_loop_with_time_outs_does_not_vanish(timeouts: int) -> None:
    """Above 1 % it was OVERLOAD; now its tail is a lower bound, and p50 is shown."""
    lag = np.full(10_000, 1.0 * US)
    gets = timed_out(10_000, timeouts)
    done = msgspec.structs.replace(window({"get": lag}, lag), operations={"get": gets})
    judgement = judge(
        done,
        workload=Workload(name="w", mix={"get": 1}),
        load=Load(name="l", schedule="uniform", rate=10_000),
        before=ServerStats(),
        after=ServerStats(),
    )
    assert judgement.verdict == "VALID"
    outcome = msgspec.structs.replace(measured("a", 0, 1000), measure=done)
    (summary,) = summarise([outcome])
    assert summary.total is not None
    response = summary.total.response
    assert response is not None
    assert response.percentiles[50.0] == pytest.approx(MS, rel=1 / 1024)
    assert response.at_least[99.9] == pytest.approx(300 * MS, rel=1 / 1024)
    # An operation that was never sent did not hold the schedule.
    unsent = msgspec.structs.replace(done, unsent=500)
    assert (
        judge(
            unsent,
            workload=Workload(name="w", mix={"get": 1}),
            load=Load(name="l", schedule="uniform", rate=10_000),
            before=ServerStats(),
            after=ServerStats(),
        ).verdict
        == "OVERLOAD"
    )


def test_what_was_never_sent_is_a_lower_bound() -> None:
    """50 of 10,000 waited 1,500 ms and were given up: p99.9 is at least that, not exactly."""
    quick = np.full(9_950, 1.0 * MS)
    gets = Operation(
        attempts=9_950,
        ok=9_950,
        response=blob(np.concatenate([quick, np.full(50, 1500.0 * MS)])),
        service=blob(quick),
    )
    outcome = measured("a", 0, 1000)
    assert outcome.measure is not None
    done = msgspec.structs.replace(outcome.measure, operations={"get": gets}, unsent=50)
    (summary,) = summarise([msgspec.structs.replace(outcome, measure=done)])
    assert summary.total is not None
    response = summary.total.response
    assert response is not None
    assert response.at_least == {99.9: pytest.approx(1500 * MS, rel=1 / 1024)}
    assert response.percentiles[99.0] == pytest.approx(MS, rel=1 / 1024)
