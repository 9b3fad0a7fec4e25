"""The ratio of runs that were played in turns, on a machine that changes meanwhile."""

import math

import pytest

from cachemark.analysis.stored_runs import RunValue, compare_run_values


def sides(order: str, trend: float, apart: float) -> tuple[list[RunValue], list[RunValue]]:
    """Runs in this order on a machine that gains `trend` a run; the head B is `apart` faster."""
    values = {
        side: [
            RunValue(
                began=f"2026-01-01T{at:02}:00:00+00:00",
                value=1e4 * math.exp(trend * at + apart * (side == "B") + 0.01 * (at % 3)),
            )
            for at, of in enumerate(order)
            if of == side
        ]
        for side in "BA"
    }
    return values["B"], values["A"]


@pytest.mark.parametrize("order", ["ABABABAB", "BABABABAB", "ABBAABBA", "AABBAABBA"])
def test_a_machine_that_gains_speed_is_no_difference_of_builds(order: str) -> None:
    found = compare_run_values(*sides(order, 0.03, 0.1)).estimate
    assert found is not None
    assert found.value == pytest.approx(0.1, abs=0.011)


@pytest.mark.parametrize("order", ["AAAABBBB", "AABBAABB", "ABAABB", "ABBABAAB" + "AABB"])
def test_runs_that_took_no_turns_have_no_interval(order: str) -> None:
    found = compare_run_values(*sides(order, 0.0, 0.1))
    assert found.pairs == 0
    assert found.estimate is not None
    assert found.estimate.error is None
