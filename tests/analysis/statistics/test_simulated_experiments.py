"""Whole experiments with a known truth, for each fault that was shown in an earlier version."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from cachemark.analysis.statistics import (
    Interval,
    absolute_figure,
    classify_ratio,
    compare,
    compare_pair,
    contrast_of_runs,
    decide,
    geometric_mean,
    paired_ratio,
    pairs_needed,
    ranking,
    window_rate,
)
from cachemark.analysis.statistics.figures import FIGURES, figures_of, resolution_of
from cachemark.analysis.verdict import check_stationarity, conclude, stationarity_findings
from cachemark.model import histogram
from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation, Timeline
from cachemark.report.build import build
from cachemark.report.markdown import render
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


def test_one_run_on_each_side_never_shows_a_difference() -> None:
    """Equal sides, runs that differ by 3 %: Welch's test over trials is wrong in half of them."""
    draw = np.random.default_rng(3)
    one, four = 0, 0
    for _ in range(200):
        logs = draw.normal(0, 0.03, (8, 1)) + draw.normal(0, 0.02, (8, 5))
        runs = [np.exp(run).tolist() for run in logs]
        alone, several = (
            contrast_of_runs("rate", runs[:count], runs[4 : 4 + count], 0.02) for count in (1, 4)
        )
        answers = [decide([of], FIGURES, 0.02)[0].answer for of in (alone, several)]
        one += answers[0] in ("better", "worse")
        four += answers[1] in ("better", "worse")
    assert one == 0
    assert four / 200 <= 0.05 + 3.29 * (0.05 * 0.95 / 200) ** 0.5


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
        first, *_ = ranking(outcomes, TEMPLATE.trial.cell)
        wrong += first == "slow"
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
    """Against the fastest: of all others, and of the second in a test of its own."""
    blocks = draw.normal(0, 0.1, 5)
    outcomes = [
        with_rate(f"c{number}", block, 1e6 * speed * np.exp(blocks[block] + draw.normal(0, 0.05)))
        for number, speed in enumerate(speeds)
        for block in range(5)
    ]
    first, second, *_ = ranking(outcomes, TEMPLATE.trial.cell)
    cell = TEMPLATE.trial.cell
    others = [found.answer for found in compare(outcomes, first, cell, 0.0)]
    lead = compare_pair(outcomes, (second, first), cell, 0.0)
    assert lead is not None
    return others, lead.answer


def test_equal_clients_are_seldom_called_slower_than_the_first() -> None:
    """13 clients: with Holm over 12 tests, 12.5 % of experiments had a false answer."""
    draw = np.random.default_rng(5)
    found = [answers(draw, [1.0] * 13) for _ in range(80)]
    assert sum("slower" in others for others, _ in found) <= 8
    assert sum(lead == "slower" for _, lead in found) <= 8


def test_a_true_lead_is_shown_by_the_test_of_the_second() -> None:
    """10 % before 12 others, in 5 blocks with 5 % of noise."""
    draw = np.random.default_rng(6)
    found = [answers(draw, [1.1, *[1.0] * 12]) for _ in range(80)]
    assert sum(lead == "slower" for _, lead in found) >= 14


# 9: the number of blocks that would settle a comparison.


@pytest.mark.parametrize("tests", [1, 12])
def test_so_many_blocks_do_settle_it(tests: int) -> None:
    draw = np.random.default_rng(9)
    significant, equivalent, count = 0, 0, 150
    for _ in range(count):
        pilot = np.exp(draw.normal(0, 0.03, 5)).tolist()
        needed = pairs_needed(pilot, [1.0] * 5, 0.03, tests)
        assert needed is not None
        logs = draw.normal(0, 0.03, needed)
        differs = paired_ratio(np.exp(logs + np.log(1.03)).tolist(), [1.0] * needed)
        equals = paired_ratio(np.exp(logs).tolist(), [1.0] * needed)
        assert differs.p is not None
        significant += differs.p < 0.05 / tests
        equivalent += classify_ratio(equals, equals.p, 0.03) == "equivalent"
    assert significant / count >= 0.8
    assert equivalent / count >= 0.8


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
    assert absolute_figure([1.0, 1.1] * 5).bounds == "interval"
    assert absolute_figure([1.0]).low is None


# 11: one p99 in a row.


def test_the_p99_of_a_row_is_the_one_that_it_is_ranked_by() -> None:
    """Pooled, one slow trial of three makes the p99; the ranking has the geometric mean."""
    load = Load(name="one", schedule="poisson", rate=1000)
    outcomes: list[Outcome] = []
    for block, typical_ns in enumerate((1_000_000, 1_000_000, 64_000_000)):
        trial = measured("a", block, 1000, index=block)
        assert trial.measure is not None
        times = histogram.encode(histogram.from_values([typical_ns] * 1000))
        gets = msgspec.structs.replace(
            trial.measure.operations["get"], response=times, service=times
        )
        window = msgspec.structs.replace(trial.measure, operations={"get": gets})
        outcomes.append(msgspec.structs.replace(trial, measure=window, load=load))
    made = msgspec.structs.replace(experiment(["a"], 3), loads=[load])
    text = render(build(header(made), outcomes), None)
    assert "a p99 of 4.00 ms" in text
    assert "| 4.00 ms −" in text
    assert "| 64.0 ms |" not in text.partition("Notes")[0].replace("| 64.0 ms | 64.0 ms |", "")


# 12: values without spread.


def test_a_coarse_clock_makes_no_differences() -> None:
    """p99 of 12 µs by a clock of 1 µs, two blocks: equal ticks are not a proof."""
    draw = np.random.default_rng(12)
    figure, wrong, count = FIGURES["p99"], 0, 80
    for _ in range(count):
        arms: list[list[Outcome]] = []
        for client in "ab":
            trials: list[Outcome] = []
            for block in range(2):
                ns = 11_500 * np.exp(draw.normal(0, 0.02)) * np.exp(draw.normal(0, 0.01, 400))
                ticks = histogram.from_values([1000 * round(each / 1000) for each in ns])
                trial = with_rate(client, block, 400)
                assert trial.measure is not None
                gets = Operation(attempts=400, ok=400, response=histogram.encode(ticks))
                window = msgspec.structs.replace(trial.measure, operations={"get": gets})
                trials.append(msgspec.structs.replace(trial, measure=window))
            arms.append(trials)
        values = [figures_of(arm, figure) or [] for arm in arms]
        resolution = max(resolution_of(arm, figure) for arm in arms)
        ratio = paired_ratio(values[0], values[1], resolution)
        assert ratio.p is not None
        assert ratio.p > 0
        wrong += ratio.p < 0.05
    assert wrong / count <= 0.05 + 3.29 * (0.05 * 0.95 / count) ** 0.5


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


def test_one_slow_reply_at_the_end_does_not_lower_the_rate() -> None:
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
