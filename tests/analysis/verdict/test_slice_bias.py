"""How long slices of many callers must be, and when even the longest are too short."""

import msgspec
import pytest

from cachemark.analysis.verdict.slice_bias import callers_of, grown_ms, slice_bias_findings
from cachemark.model.experiment import Load, RoundsTiming
from cachemark.model.outcome import Outcome
from cachemark.runs.sittings.warm_up import WarmUpSlice, operation_ns
from tests.builders import rounds as made

TIMING = RoundsTiming(slice_ms=30, lead_in_percent=15)


def played(operation_ms: float, length_ms: float) -> Outcome:
    """An arm of 32 callers with such operations, in slices of this length."""
    outcome = made.run({"python/pymemcache": 10_000}, 1)[0]
    assert outcome.rounds
    rounds = msgspec.structs.replace(
        outcome.rounds,
        length_us=round(1e3 * length_ms),
        lead_in_us=round(150 * length_ms),
        operation_ns=round(1e6 * operation_ms),
    )
    load = msgspec.structs.replace(outcome.load, threads=32)
    return msgspec.structs.replace(outcome, rounds=rounds, load=load)


@pytest.mark.parametrize(
    ("operation_ms", "expected_ms"), [(0.0, 30), (0.2, 30), (0.3, 50), (1.0, 150), (9.0, 500)]
)
def test_slices_grow_to_125_operations_within_half_a_second(
    operation_ms: float, expected_ms: float
) -> None:
    assert grown_ms(TIMING, 1e6 * operation_ms) == expected_ms


def test_slices_never_shrink() -> None:
    assert grown_ms(msgspec.structs.replace(TIMING, slice_ms=200), 1e5) == 200


def test_an_operations_time_is_from_the_warm_ups_last_slices() -> None:
    cold = [WarmUpSlice(ops=10, wall_ns=30_000_000)] * 8
    warm = [WarmUpSlice(ops=100, wall_ns=30_000_000)] * 7
    paused = [WarmUpSlice(ops=0, wall_ns=30_000_000)]
    assert operation_ns([*cold, *warm, *paused], callers=4) == 4 * 300_000
    assert operation_ns(cold, callers=1) == 0
    assert operation_ns(paused, callers=4) == 0


def test_only_closed_loops_have_callers_who_wait_for_each_other() -> None:
    assert callers_of(Load(name="a", threads=2, connections=4, depth=8, processes=3)) == 96
    assert callers_of(Load(name="a", connections=32, schedule="poisson", rate=1000)) == 1


def test_a_rate_without_long_enough_slices_is_withheld_with_reason() -> None:
    (found,) = slice_bias_findings(played(operation_ms=8.5, length_ms=500))
    assert found.weight == "INVALID"
    assert found.figure == pytest.approx(2.5)
    assert found.limit == pytest.approx(1.0)
    assert "up to 2.5 % too high" in found.text
    assert "design=trials" in found.text


def test_slices_that_have_grown_are_long_enough() -> None:
    for operation_ms in (0.01, 0.3, 2.0, 3.3):
        length_ms = grown_ms(TIMING, 1e6 * operation_ms)
        assert slice_bias_findings(played(operation_ms, length_ms)) == []
