"""Lines before the first trial: items that do not fit into a server, windows that are too short."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.endpoints.servers import parse_spec
from cachemark.model.experiment import Load
from cachemark.model.experiment_file import parse
from cachemark.model.plan import make_plan
from cachemark.runs.planning.data_fit import lines_about_fit, lines_about_windows
from cachemark.runs.tapes import DataSet
from tests.builders.outcomes import experiment

EXPERIMENT = """
name = "e"
question = "Which?"
clients = ["native"]
servers = ["{server}"]
[[workloads]]
name = "w"
mix = {{ get = 1 }}
{extra}
[[loads]]
name = "l"
"""
# 100,000 items of 1 KiB with keys of 20 bytes.
DATA = DataSet(items=100_000, data_bytes=100_000 * 1044)


def lines(server: str, data: DataSet = DATA, extra: str = "") -> list[str]:
    plan = make_plan(parse(EXPERIMENT.format(server=server, extra=extra), "e.toml"))
    servers = {server: parse_spec(server)}
    return lines_about_fit(plan, servers, {("w", "l"): data})


@pytest.mark.parametrize(
    ("server", "limit", "advice"),
    [
        ("memcached", "64 MiB", "memory=152m"),
        ("memcached:memory=32", "32 MiB", "memory=152m"),
        ("embedded:memory=16m", "16 MiB", "memory=136m"),
        ("cluster:2:memcached:memory=16m", "32 MiB", "memory=80m"),
        ("nutcracker:memcached", "64 MiB", "memory=152m"),
    ],
)
def test_too_little_memory_is_told_with_the_remedy(server: str, limit: str, advice: str) -> None:
    (line,) = lines(server)
    assert "100 k items need about 1" in line
    assert f"{server} has {limit}: it will evict" in line
    assert line.endswith(advice)


@pytest.mark.parametrize(
    "server", ["memcached:memory=152m", "embedded:memory=1g", "yrmcds", "remote:127.0.0.1:1"]
)
def test_enough_or_unknown_memory_is_no_line(server: str) -> None:
    assert not lines(server)


def test_near_the_limit_it_may_evict() -> None:
    (line,) = lines("memcached:memory=120m")
    assert "it may evict" in line


def test_a_fill_is_meant_to_fill() -> None:
    assert not lines("memcached", extra="fill_percent = 80")


def window_lines(rate: float, measure_ms: int) -> list[str]:
    made = experiment(["a", "b"])
    timing = msgspec.structs.replace(made.timing, measure_ms=measure_ms)
    load = Load(name=made.loads[0].name, schedule="poisson", rate=rate)
    return lines_about_windows(
        make_plan(msgspec.structs.replace(made, loads=[load], timing=timing))
    )


@pytest.mark.parametrize(
    ("rate", "words", "longer"),
    [(500, "has 5 operations above its p99", 4000), (100, "has no p99, which takes 368", 20_000)],
)
def test_a_window_with_too_few_operations_is_told_with_the_length_that_it_needs(
    rate: float, words: str, longer: int
) -> None:
    (line,) = window_lines(rate, 1000)
    assert words in line
    assert line.endswith(f"--measure-ms {longer}")
    assert window_lines(rate, longer) == []


def test_nothing_is_said_of_a_closed_loop_and_of_a_search() -> None:
    made = experiment(["a"])
    assert lines_about_windows(make_plan(made)) == []
    load = Load(name=made.loads[0].name, schedule="poisson")
    search = msgspec.structs.replace(made, search="p99<1ms", loads=[load])
    assert lines_about_windows(make_plan(search)) == []
