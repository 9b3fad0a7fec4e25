"""Numbers with units: Python and the engine read them alike; objectives have such a number."""

import json
import subprocess

import pytest

from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError
from cachemark.model.search_steps import Objective, parse_objective
from cachemark.model.units import parse_count, parse_memory, parse_ms, parse_size

GOOD = ["p99<1ms", "p99.9<500us", "p50 < 2s", "p90<1.5m", "p99<250µs", " p99<1ms"]
BAD = ["", "p99", "p99<1", "99<1ms", "p0<1ms", "p100<1ms", "p99>1ms", "p<1ms", "p99<ms", "p99<1h"]


@pytest.mark.parametrize("text", ["1", "1000", "10k", "10K", "1.5M", "5m", "2.01k", "1.001M"])
def test_counts_are_those_of_the_engine(text: str) -> None:
    command = [binary_path(), "tape", "settings", "--", f"--records={text}"]
    told = subprocess.run(command, capture_output=True, check=True).stdout
    assert json.loads(told)["workload"]["records"] == parse_count(text, "--items")


@pytest.mark.parametrize(
    ("text", "count"),
    [("100", 100), ("64k", 65_536), ("4kB", 4096), ("4KiB", 4096), ("200m", 200 << 20)],
)
def test_sizes_have_binary_factors(text: str, count: int) -> None:
    assert parse_size(text, "--size") == count


@pytest.mark.parametrize(("text", "ms"), [("8.2s", 8200), ("4.1s", 4100), ("0.001s", 1)])
def test_decimal_times_are_whole_milliseconds(text: str, ms: int) -> None:
    assert parse_ms(text, "--duration") == ms


def test_memory_without_a_unit_is_in_mebibytes() -> None:
    assert parse_memory("1024", "memory") == parse_memory("1g", "memory") == 1 << 30
    assert parse_memory("200m", "memory") == 200 << 20


@pytest.mark.parametrize("text", ["", "0", "-1", "k", "1.5.2", "nan", "4q", "4 kB x", "9" * 30])
def test_nonsense_is_one_clear_error(text: str) -> None:
    for parse in (parse_count, parse_size, parse_memory):
        with pytest.raises(UsageError, match=r"--here: .* is no"):
            parse(text, "--here")


@pytest.mark.parametrize("text", GOOD)
def test_spaces_and_units_are_read(text: str) -> None:
    assert parse_objective(text, "x").below_ns > 0


def test_an_objective_is_a_percentile_and_a_time() -> None:
    assert parse_objective("p99.9<500us", "x") == Objective(percent=99.9, below_ns=500_000)
    assert parse_objective("p50 < 1.5s", "x").below_ns == 1_500_000_000


@pytest.mark.parametrize("text", BAD)
def test_a_nonsense_objective_is_one_clear_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"search: .* is no objective") as found:
        parse_objective(text, "search")
    assert "p99<1ms" in found.value.remedy
