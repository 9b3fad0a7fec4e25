"""Objectives such as `p99<1ms`."""

from __future__ import annotations

import pytest

from cachemark.model.errors import UsageError
from cachemark.model.search_steps import Objective, parse_objective

GOOD = ["p99<1ms", "p99.9<500us", "p50 < 2s", "p90<1.5m", "p99<250µs", " p99<1ms"]
BAD = ["", "p99", "p99<1", "99<1ms", "p0<1ms", "p100<1ms", "p99>1ms", "p<1ms", "p99<ms", "p99<1h"]


@pytest.mark.parametrize("text", GOOD)
def test_spaces_and_units_are_read(text: str) -> None:
    assert parse_objective(text, "x").below_ns > 0


def test_an_objective_is_a_percentile_and_a_time() -> None:
    assert parse_objective("p99.9<500us", "x") == Objective(percent=99.9, below_ns=500_000)
    assert parse_objective("p50 < 1.5s", "x").below_ns == 1_500_000_000


@pytest.mark.parametrize("text", BAD)
def test_nonsense_is_one_clear_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"search: .* is no objective") as found:
        parse_objective(text, "search")
    assert "p99<1ms" in found.value.remedy
