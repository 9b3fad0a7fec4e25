"""JMH as it goes on, and as it goes on after an interruption."""

from typing import Any

import msgspec
import pytest

from cachemark.endpoints.clients import parse_client, registry
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.model.jmh import ORIGINAL, JmhSettings
from cachemark.runs import jmh
from cachemark.runs.jmh import benchmarks
from cachemark.runs.jmh_progress import JmhProgress, JmhStep
from cachemark.runs.jmh_resume import kept_measurements
from tests.builders.jmh_report import resumable

CLIENTS = registry(process.binary_path())
ONE_SECOND = JmhSettings(warmups=1, iterations=1)

RATE = """
# Threads: 32 threads, will synchronize iterations
# Benchmark mode: Throughput, ops/time
# Benchmark: cachemark.jmh.Memcached.throughput
# Parameters: (batch = 50, client = folsom, operation = set-get, wire = text)

# Run progress: 0.00% complete, ETA 00:02:40
Iteration   1: 30100.5 ops/s

Result "cachemark.jmh.Memcached.throughput":
  30123.456 ±(99.9%) 12.500 ops/s [Average]
  (min, avg, max) = (30000.000, 30123.456, 30200.000), stdev = 9.000
"""
TIMES = """
# Threads: 1 thread, will synchronize iterations
# Benchmark: cachemark.jmh.Memcached.latency
# Parameters: (batch = 50, client = folsom, operation = mget, wire = binary)

Result "cachemark.jmh.Memcached.latency":
  N = 643531
  mean =    812.345 ±(99.9%) 1.250 us/op

  Histogram, us/op:
"""
FAILED = """
# Benchmark: cachemark.jmh.Memcached.latency
# Parameters: (batch = 50, client = folsom, operation = get, wire = text)
# Warmup Iteration   1: <failure>
"""


def texts(steps: list[JmhStep], *, ended: bool) -> list[str]:
    return [step.text for step in steps if step.ended == ended]


def test_each_benchmark_is_told_with_its_figure() -> None:
    progress = JmhProgress(3, ONE_SECOND, began_s=0.0)
    steps = progress.steps((RATE + TIMES + FAILED).encode(), now_s=1.0)
    assert texts(steps, ended=True) == [
        "1 of 3: folsom, text, set-get, 32 threads, throughput: 30123.456 ±(99.9%) 12.500 ops/s",
        "2 of 3: folsom, binary, mget, 1 thread, latency: 812.345 ±(99.9%) 1.250 us/op",
        "3 of 3: folsom, text, get, 1 thread, latency: no figure",
    ]


def test_the_time_left_is_that_of_the_benchmarks_before() -> None:
    progress = JmhProgress(3, ONE_SECOND, began_s=100.0)
    first = progress.steps(RATE.encode(), now_s=100.0)
    second = progress.steps(TIMES.encode(), now_s=400.0)
    assert texts(first, ended=False) == [
        "1 of 3: folsom, text, set-get, 32 threads, throughput; about 15 s left"
    ]
    assert texts(second, ended=False) == [
        "2 of 3: folsom, binary, mget, 1 thread, latency; about 10 min left"
    ]


def test_a_line_may_come_in_parts() -> None:
    whole, parts = (JmhProgress(1, ONE_SECOND, began_s=0.0) for _ in range(2))
    printed = RATE.encode()
    by_byte = [step for at in range(len(printed)) for step in parts.steps(printed[at : at + 1], 0)]
    assert by_byte == whole.steps(printed, 0)
    assert len(by_byte) == 2


def test_the_original_is_longer_than_half_an_hour() -> None:
    """Two modes, two protocols, two operations, and 32 and 128 threads, of each client."""
    played = benchmarks(parse_client("java/folsom", CLIENTS), ORIGINAL)
    assert len(set(played)) == len(played) == 16
    assert [one.threads for one in played] == 8 * [32] + 8 * [128]
    assert JmhProgress(3 * 16, ORIGINAL, 0.0).plan() == "48 benchmarks, about 34 min"


def test_a_cache_in_the_process_has_no_second_protocol() -> None:
    settings = JmhSettings(wires=("text", "binary"), operations=("get", "get"), modes=("latency",))
    counts = [
        len(benchmarks(parse_client(f"java/{name}", CLIENTS), settings))
        for name in ("caffeine", "folsom")
    ]
    assert counts == [1, 2]


def test_what_an_interrupted_run_has_is_kept() -> None:
    spec, settings = parse_client("java/spymemcached", CLIENTS), ORIGINAL
    planned = jmh.benchmarks(spec, settings)
    document = msgspec.json.encode([resumable(spec, one, settings) for one in planned[:3]])
    kept = kept_measurements(document, "x.json", [spec], settings)
    assert list(kept) == [(spec.text, one) for one in planned[:3]]
    assert [each.results[0].params["operation"] for each in kept.values()] == [
        one.operation for one in planned[:3]
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"threads": 16}, "other settings"),
        ({"warmupIterations": 3}, "other settings"),
        ({"measurementTime": "10 s"}, "other settings"),
    ],
)
def test_results_of_other_settings_are_not_mixed_in(changed: dict[str, Any], told: str) -> None:
    spec, settings = parse_client("java/spymemcached", CLIENTS), ORIGINAL
    first = jmh.benchmarks(spec, settings)[0]
    document = msgspec.json.encode([resumable(spec, first, settings, **changed)])
    with pytest.raises(UsageError, match=told) as found:
        kept_measurements(document, "x.json", [spec], settings)
    assert "x.json" in str(found.value)


def test_a_file_that_is_no_json_of_jmh_is_named() -> None:
    spec = parse_client("java/spymemcached", CLIENTS)
    with pytest.raises(UsageError, match=r"x\.json: JMH's JSON cannot be read"):
        kept_measurements(b"no", "x.json", [spec], ORIGINAL)
