"""Whole experiments with a known truth, for each fault that was shown in an earlier version."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from cachemark.analysis.rounds.answers import answers as answers_of
from cachemark.analysis.rounds.estimate import mean_of_logs
from cachemark.analysis.rounds.looks import needed
from cachemark.analysis.rounds.pairs import ROUND_FIGURES, read_sittings
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.rounds.ranking import rank
from cachemark.analysis.statistics import (
    MIN_INTERVAL_TRIALS,
    Interval,
    absolute_figure,
    classify,
    geometric_mean,
    window_rate,
)
from cachemark.analysis.stored_runs import RunValue, compare_run_values
from cachemark.analysis.verdict import check_stationarity, conclude, stationarity_findings
from cachemark.model import histogram
from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation, Timeline
from cachemark.report.build import build
from cachemark.report.formats import RENDERERS
from tests.builders.compared import BY_BLOCK, compared
from tests.builders.histograms import from_values
from tests.builders.outcomes import WORKLOAD, experiment, header, measured

TEMPLATE = measured("a", 0, 100)
Logs = NDArray[np.float64]


def with_rate(client: str, block: int, rate: float) -> Outcome:
    """A valid trial of a client at a rate."""
    assert TEMPLATE.measure is not None
    gets = msgspec.structs.replace(
        TEMPLATE.measure.operations["get"], attempts=round(rate), ok=round(rate)
    )
    cell = msgspec.structs.replace(TEMPLATE.trial.cell, client=client)
    trial = msgspec.structs.replace(TEMPLATE.trial, cell=cell, block=block)
    window = msgspec.structs.replace(TEMPLATE.measure, operations={"get": gets})
    return msgspec.structs.replace(TEMPLATE, trial=trial, measure=window)


def holds(interval: Interval, truth: float) -> bool:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low <= truth <= interval.high


# 1: a client with slow phases of its own must be shown with them.


def phases(draw: np.random.Generator, slices: int) -> Logs:
    """The speed in slices of 10 ms: half for 350 ms, about every two seconds."""
    speed = np.ones(slices)
    at = draw.exponential(200)
    while at < slices:
        speed[int(at) : int(at) + 35] = 0.5
        at += 35 + draw.exponential(200)
    return speed


def window_of(speed: Logs, draw: np.random.Generator) -> Done:
    ok = draw.poisson(100 * speed).tolist()
    count = sum(ok)
    return Done(
        phase="measure",
        elapsed_ns=10_000_000 * len(speed),
        send_elapsed_ns=10_000_000 * len(speed),
        operations={"get": Operation(attempts=count, ok=count)},
        timeline=Timeline(slice_ns=10_000_000, ok=ok, response_ns=[0] * len(ok)),
    )


def test_a_client_with_slow_phases_is_not_shown_without_them() -> None:
    """The true ratio is 0.926. Trials without a change of level would say 0.985."""
    draw = np.random.default_rng(1)
    ratios: list[float] = []
    changed = 0
    for _ in range(150):
        # The phases have gone on for a while when a window begins.
        measure = window_of(phases(draw, 1000)[-100:], draw)
        stationarity = check_stationarity(measure, WORKLOAD, Load(name="l"))
        found = stationarity_findings(stationarity)
        changed += bool(found)
        assert conclude(found, stationarity).verdict == "VALID"
        steady = window_of(np.ones(100), draw)
        ratios.append(measure.operations["get"].ok / steady.operations["get"].ok)
    assert changed > 30
    assert float(np.mean(ratios)) == pytest.approx(0.926, abs=0.02)


# 3: the trials of one run share its state.


def in_turns(draw: np.random.Generator, count: int, noise: float) -> tuple[list[RunValue], ...]:
    """Runs of two equal sides, one after the other in time."""
    values = np.exp(draw.normal(0, noise, (count, 2)))
    return tuple(
        [RunValue(began=f"{2 * n + side:04}", value=values[n, side]) for n in range(count)]
        for side in (0, 1)
    )


def test_one_run_on_each_side_never_shows_a_difference() -> None:
    """Equal sides, runs that differ by 3 %: Welch's test over trials is wrong in half of them."""
    draw = np.random.default_rng(3)
    four = 0
    for _ in range(400):
        assert compare_run_values(*in_turns(draw, 1, 0.03)).pairs == 0
        found = compare_run_values(*in_turns(draw, 4, 0.03))
        assert found.estimate is not None
        p = found.estimate.ratio(0.95).p
        four += p is not None and p <= 0.05
    assert four / 400 <= 0.05 + 3.29 * (0.05 * 0.95 / 400) ** 0.5


# 4: clients are ranked on common blocks.


def test_the_faster_client_is_first_also_where_trials_are_missing() -> None:
    """5 % faster, 31 % of the trials rejected, blocks that differ by 40 %."""
    draw = np.random.default_rng(4)
    wrong, by_means, count = 0, 0, 100
    for _ in range(count):
        blocks = np.exp(draw.normal(0, 0.4, 8))
        outcomes = [
            with_rate(client, block, 1e6 * speed * blocks[block] * np.exp(draw.normal(0, 0.01)))
            for client, speed in (("fast", 1.05), ("slow", 1.0))
            for block in range(8)
            if draw.random() > 0.31
        ]
        cells = [
            msgspec.structs.replace(TEMPLATE.trial.cell, client=client)
            for client in ("fast", "slow")
        ]
        (first, *_), _ = rank(read_sittings(outcomes, ["rate"]), cells, ROUND_FIGURES["rate"])
        wrong += first.cell.client == "slow"
        means = {
            client: geometric_mean(
                [window_rate(o) or 0.0 for o in outcomes if o.trial.cell.client == client] or [1.0]
            ).value
            for client in ("fast", "slow")
        }
        by_means += means["slow"] > means["fast"]
    assert wrong <= 4
    assert by_means > 20


# 5: the first client was chosen because it is the first.


def answers(draw: np.random.Generator, speeds: Sequence[float]) -> tuple[list[str], str]:
    """Against the fastest: of all others, and whether it is named as first."""
    blocks = draw.normal(0, 0.1, 5)
    outcomes = [
        with_rate(f"c{number}", block, 1e6 * speed * np.exp(blocks[block] + draw.normal(0, 0.05)))
        for number, speed in enumerate(speeds)
        for block in range(5)
    ]
    cells = list(dict.fromkeys(one.trial.cell for one in outcomes))
    rule = msgspec.structs.replace(BY_BLOCK, margin=0.0)
    found = answers_of(outcomes, questions_of(cells), rule, final=True, figures=["rate"])
    (ranking,) = found.groups[0].rankings
    others = [place.to_winner.answer for place in ranking.places if place.to_winner]
    return others, ranking.lead.answer if ranking.lead else "open"


def test_equal_clients_are_seldom_called_slower_than_the_first() -> None:
    """13 clients: with Holm over 12 tests, 12.5 % of experiments had a false answer."""
    draw = np.random.default_rng(5)
    found = [answers(draw, [1.0] * 13) for _ in range(80)]
    assert sum("worse" in others for others, _ in found) <= 8
    assert sum(lead == "better" for _, lead in found) <= 8


def test_a_true_lead_is_shown() -> None:
    """10 % before 12 others, in 5 blocks with 5 % of noise."""
    draw = np.random.default_rng(6)
    found = [answers(draw, [1.1, *[1.0] * 12]) for _ in range(80)]
    assert sum(lead == "better" for _, lead in found) >= 4


# 9: the number of blocks that would settle a comparison.


@pytest.mark.parametrize("tests", [1, 12])
@pytest.mark.parametrize("truth", [0.0, 0.12])
def test_so_many_blocks_do_settle_it(truth: float, tests: int) -> None:
    draw = np.random.default_rng(9)
    rule = msgspec.structs.replace(BY_BLOCK, margin=0.03)
    settled = told = 0
    for _ in range(150):
        pilot = draw.normal(truth, 0.03, 5)
        enough = needed(mean_of_logs(pilot.tolist()), rule, tests)
        if enough is None:
            continue
        told += 1
        logs = [*pilot, *draw.normal(truth, 0.03, enough - 5)]
        found = mean_of_logs(logs).ratio(rule.confidence)
        assert found.p is not None
        p = min(1.0, found.p * tests)
        settled += classify(found, p, rule.margin, more_is_better=True) != "open"
    assert told > 100
    # 80 %, less 3.29 standard errors.
    assert settled / told >= 0.8 - 3.29 * (0.8 * 0.2 / told) ** 0.5


# 10: a few trials of a client that is sometimes slow.


def test_a_few_trials_have_their_range_and_no_interval() -> None:
    """Half speed in one trial of ten: the t interval of five holds the truth in 40 %."""
    draw = np.random.default_rng(10)
    truth = 0.5**0.1
    held = 0
    for _ in range(300):
        values = (
            np.where(draw.random(5) < 0.1, 0.5, 1.0) * np.exp(draw.normal(0, 0.01, 5))
        ).tolist()
        held += holds(geometric_mean(values), truth)
        shown = absolute_figure(values)
        assert (shown.low, shown.high, shown.bounds) == (min(values), max(values), "range")
    assert held / 300 < 0.6
    many = [1.0, 1.1] * (MIN_INTERVAL_TRIALS // 2)
    assert absolute_figure(many[1:]).bounds == "range"
    assert absolute_figure(many).bounds == "interval"
    assert absolute_figure([1.0]).low is None


# 11: one p99 in a row.


def test_a_row_is_ranked_by_the_p99_that_it_shows() -> None:
    """One slow trial of three makes the p99 of all: so it is in the row, and in the answer."""
    load = Load(name="one", schedule="poisson", rate=1000)
    outcomes: list[Outcome] = []
    for block, typical_ns in enumerate((1_000_000, 1_000_000, 64_000_000)):
        trial = measured("a", block, 1000, index=block)
        assert trial.measure is not None
        times = histogram.encode(from_values([typical_ns] * 1000))
        gets = msgspec.structs.replace(
            trial.measure.operations["get"], response=times, service=times
        )
        window = msgspec.structs.replace(trial.measure, operations={"get": gets})
        outcomes.append(msgspec.structs.replace(trial, measure=window, load=load))
    made = msgspec.structs.replace(experiment(["a"], 3), loads=[load])
    text = RENDERERS["markdown"](build(header(made), outcomes), None)
    assert "a p99 of 64.0 ms" in text
    assert "| 64.0 ms −98/+0.0 % |" in text
    assert "4.00 ms" not in text


# 12: values without spread.


def by_a_coarse_clock(draw: np.random.Generator, factor: float, blocks: int) -> list[Outcome]:
    """Two clients of about 10 µs by a clock of 1 µs; b takes `factor` × the time of a."""
    trials: list[Outcome] = []
    for client, own in (("a", 1.0), ("b", factor)):
        for block in range(blocks):
            ns = 10_400 * own * np.exp(draw.normal(0, 0.001)) * np.exp(draw.normal(0, 0.01, 400))
            ticks = from_values([1000 * round(each / 1000) for each in ns])
            trial = with_rate(client, block, 400)
            assert trial.measure is not None
            gets = Operation(attempts=400, ok=400, response=histogram.encode(ticks))
            window = msgspec.structs.replace(trial.measure, operations={"get": gets})
            trials.append(msgspec.structs.replace(trial, measure=window))
    return trials


@pytest.mark.parametrize("blocks", [2, 8])
def test_a_coarse_clock_makes_no_differences(blocks: int) -> None:
    """Equal ticks are not a proof, however many blocks have them."""
    draw = np.random.default_rng(12)
    wrong = held = 0
    for _ in range(30):
        same = compared(by_a_coarse_clock(draw, 1.0, blocks), "b", "a", figure="p50").ratio
        other = compared(by_a_coarse_clock(draw, 1.019, blocks), "b", "a", figure="p50").ratio
        assert same is not None
        assert other is not None
        assert same.p is not None
        wrong += same.p < 0.05
        held += holds(other, 1.019)
    assert wrong <= 5
    assert held >= 26


# 13: the rate of a window that ends after a time.


def stalling_lanes(draw: np.random.Generator, seconds: int) -> tuple[Outcome, float]:
    """64 lanes of 1 ms operations, one of a thousand of 200 ms; and the true rate."""
    window_ns = seconds * 10**9
    ended: list[float] = []
    for _ in range(64):
        service = np.where(draw.random(1100 * seconds) < 0.001, 200e6, 1e6)
        ends = np.cumsum(service)
        started = ends - service < window_ns
        ended += ends[started].tolist()
    ends = np.array(ended)
    slice_ns = 4_000_000
    counts = np.bincount((ends // slice_ns).astype(int)).tolist()
    gets = Operation(attempts=len(ended), ok=len(ended))
    done = Done(
        phase="measure",
        elapsed_ns=round(ends.max()),
        send_elapsed_ns=window_ns,
        operations={"get": gets},
        timeline=Timeline(slice_ns=slice_ns, ok=counts, response_ns=[0] * len(counts)),
    )
    outcome = msgspec.structs.replace(
        TEMPLATE,
        measure=done,
        timing=Timing(measure_ms=1000 * seconds),
        workload=Workload(name="w", mix={"get": 1}),
    )
    return outcome, 64e9 / (0.999 * 1e6 + 0.001 * 200e6)


def test_one_slow_last_reply_does_not_lower_the_rate() -> None:
    """By the last reply of all lanes, the rate of a second was 13 % too low."""
    draw = np.random.default_rng(13)
    found, by_last = [], []
    for _ in range(6):
        outcome, truth = stalling_lanes(draw, 1)
        assert outcome.measure is not None
        rate = window_rate(outcome)
        assert rate is not None
        found.append(rate / truth)
        count = outcome.measure.operations["get"].ok
        by_last.append(count / outcome.measure.elapsed_ns * 1e9 / truth)
        # Without a timeline there is nothing better than the last reply.
        blind = msgspec.structs.replace(outcome.measure, timeline=None)
        assert (window_rate(msgspec.structs.replace(outcome, measure=blind)) or 0) / truth == (
            pytest.approx(by_last[-1])
        )
    assert float(np.mean(found)) == pytest.approx(1, abs=0.03)
    assert float(np.mean(by_last)) < 0.93
