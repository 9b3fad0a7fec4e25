"""The figures of one sitting, and what two arms' rounds say about their ratio."""

import math
import random

import msgspec
import numpy as np
import pytest

from cachemark.analysis.rounds.sitting import (
    lag1,
    ratio_of_totals,
    round_log_ratios,
    total_rate,
    typical_round,
)
from cachemark.model.rounds import Slices
from tests.builders.rounds import SLICE_NS, sitting


def slices(ops: list[int], **columns: list[int]) -> Slices:
    """Slices of one square with a row each."""
    count = len(ops)
    full = {
        "square": [0] * count,
        "row": list(range(count)),
        "wall_ns": [SLICE_NS] * count,
        "errors": [0] * count,
        "lead_in_ops": [0] * count,
        "elapsed_ns": [SLICE_NS] * count,
        "worker_cpu_ns": [10**7] * count,
        "server_cpu_ns": [10**6] * count,
        "idle_cpu_ns": [0] * count,
        "steal_ns": [0] * count,
    }
    return Slices(ops=ops, **{**full, **columns})


def test_the_rate_is_over_all_counted_slices() -> None:
    found = total_rate(slices([80, 0], errors=[0, 10], lead_in_ops=[10, 0]))
    assert found == pytest.approx(80 / (2 * SLICE_NS) * 1e9)
    assert total_rate(slices([0, 0])) is None
    assert total_rate(Slices()) is None


def test_rounds_that_are_alike_are_one_batch() -> None:
    """Four rounds with the same rates say as much as one that is four times as long."""
    rates = [90, 110, 130, 95, 105, 120, 80]
    alike = slices([rate for rate in rates for _ in range(4)])
    long = slices([4 * rate for rate in rates], elapsed_ns=[4 * SLICE_NS] * 7)
    of = ratio_of_totals(alike, slices([100] * 28))
    whole = ratio_of_totals(long, slices([400] * 7, elapsed_ns=[4 * SLICE_NS] * 7))
    assert of is not None
    assert whole is not None
    assert of.degrees_of_freedom == 6
    by_hand = np.asarray(rates) / sum(rates) - 1 / 7
    assert of.error == pytest.approx(math.sqrt(7 / 6 * float(by_hand @ by_hand)))
    assert of.value == pytest.approx(whole.value)


@pytest.mark.parametrize(("rounds", "batches"), [(2, 2), (8, 2), (11, 2), (15, 3), (99, 8)])
def test_batches_have_four_rounds_before_there_are_many(rounds: int, batches: int) -> None:
    """One round is like the next: with shorter batches, intervals hold in 90 % only."""
    of = ratio_of_totals(slices(list(range(1, rounds + 1))), slices([100] * rounds))
    assert of is not None
    assert of.degrees_of_freedom == batches - 1


def test_rounds_are_paired_by_square_and_row() -> None:
    one, two = slices([10, 20, 30]), slices([5, 5, 5], row=[2, 1, 7])
    assert np.exp(round_log_ratios(one, two)).tolist() == pytest.approx([4.0, 6.0])
    cpu = np.exp(round_log_ratios(one, two, "client-cpu")).tolist()
    assert cpu == pytest.approx([1 / 4, 1 / 6])
    without = msgspec.structs.replace(two, server_cpu_ns=[-1] * 3)
    assert len(round_log_ratios(one, without, "server-cpu")) == 0


def test_an_empty_slice_gives_infinity_and_two_are_left_out() -> None:
    logs = round_log_ratios(slices([0, 5, 0]), slices([5, 0, 0]))
    assert logs.tolist() == [-math.inf, math.inf]


def test_the_typical_round_is_a_median_without_rare_slow_slices() -> None:
    fast = [100 + n % 3 for n in range(50)]
    slow = [of // 2 if n % 5 == 0 else of for n, of in enumerate(fast)]
    logs = round_log_ratios(slices(slow), slices(fast))
    found = typical_round(logs, 0.95)
    assert found is not None
    assert (found.ratio, found.low, found.high, found.rounds) == (1, 1, 1, 50)
    totals = ratio_of_totals(slices(slow), slices(fast))
    assert totals is not None
    assert math.exp(totals.value) == pytest.approx(0.9, abs=0.01)
    assert typical_round([], 0.95) is None


def test_lag1_is_the_correlation_of_neighbours() -> None:
    draw = random.Random(3)
    level, values = 0.0, []
    for _ in range(4000):
        level = 0.6 * level + draw.gauss(0, 1)
        values.append(level)
    assert lag1(values) == pytest.approx(0.6, abs=0.05)
    assert lag1([1.0, -1.0] * 10) == pytest.approx(-0.95)
    assert lag1([1.0] * 20) is None
    assert lag1([1.0, 2.0]) is None


@pytest.mark.parametrize("squares", [2, 3, 12])
def test_the_interval_within_a_sitting_covers_the_ratio_of_totals(squares: int) -> None:
    covered = 0
    for seed in range(300):
        draw = random.Random(seed)

        def rate(arm: int, _before: int, _number: int, draw: random.Random = draw) -> float:
            return (30_000, 20_000, 10_000)[arm] * draw.lognormvariate(0, 0.2)

        one, two, _ = sitting(3, squares, rate, seed)
        found = ratio_of_totals(one, two)
        assert found is not None
        interval = found.ratio(0.95)
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= 1.5 <= interval.high
    # 95 % ± 3.3 standard errors of 300 draws.
    assert 0.90 <= covered / 300 <= 0.99


def test_zero_total_has_no_ratio_and_one_round_no_interval() -> None:
    assert ratio_of_totals(slices([0, 0]), slices([1, 1])) is None
    assert ratio_of_totals(slices([1]), slices([1], row=[5])) is None
    single = ratio_of_totals(slices([2]), slices([1]))
    assert single is not None
    assert single.ratio(0.95).low is None
    assert single.ratio(0.95).value == pytest.approx(2)
