"""Objectives such as `p99<1ms`: Python and the engine read the same texts."""

from __future__ import annotations

import pytest

from cachemark.model.errors import UsageError
from cachemark.model.objective import Objective, parse_objective
from tests.engine.drive_command import drive

GOOD = ["p99<1ms", "p99.9<500us", "p50 < 2s", "p90<1.5m", "p99<250µs", " p99<1ms"]
BAD = ["", "p99", "p99<1", "99<1ms", "p0<1ms", "p100<1ms", "p99>1ms", "p<1ms", "p99<ms", "p99<1h"]


@pytest.mark.parametrize("text", [*GOOD, *BAD])
def test_the_engine_reads_the_same_texts(text: str) -> None:
    # An address that cannot be: what can be read fails later, for another reason.
    told = drive("--server", "nowhere", f"--search={text}", "--quiet").stderr
    assert ("invalid value" in told) == (text in BAD), told


def test_an_objective_is_a_percentile_and_a_time() -> None:
    assert parse_objective("p99.9<500us", "x") == Objective(percent=99.9, below_ns=500_000)
    assert parse_objective("p50 < 1.5s", "x").below_ns == 1_500_000_000


@pytest.mark.parametrize("text", BAD)
def test_nonsense_is_one_clear_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"search: .* is no objective") as found:
        parse_objective(text, "search")
    assert "p99<1ms" in found.value.remedy
