"""The Java clients under JMH: what is read from it, and its rates beside the worker's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.protocol import Operation, Prepare, Ready, RunRequest
from cachemark.runs import jmh
from cachemark.runs.jmh import JmhMeasurement, JmhSettings
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
SPY = CLIENTS["java/spymemcached"]
runs_java = pytest.mark.skipif(
    bool(SPY.missing()) or shutil.which("memcached") is None,
    reason=f"{SPY.setup}; apt-get install memcached",
)
MEMCACHED = "memcached:threads=1,memory=64"
slow = pytest.mark.slow("JMH starts a JVM for each benchmark, and measures for seconds")
# Generous, and for the best of several windows: others may use the machine too, and then one
# window does a fifth of the next. Calls or keys counted wrongly would still tell.
FACTOR = 4
WINDOWS = 6
PRINTED = """
# Benchmark: cachemark.jmh.Memcached.throughput
# Parameters: (client = caffeine, operation = get, server = none, valueSize = 100, wire = text)
Iteration   1: 18291.945 ops/s
# Benchmark: cachemark.jmh.Memcached.latency
# Parameters: (client = caffeine, operation = touch, server = none, valueSize = 100, wire = text)
# Warmup Iteration   1: <failure>

cachemark.worker.Unsupported: caffeine: no touch on the wire none
\tat cachemark.worker.Setup.check(Setup.java:100)
"""


def entry(mode: str, operation: str, **metric: Any) -> dict[str, Any]:
    """An entry of JMH's JSON."""
    method = {"thrpt": "throughput", "sample": "latency"}[mode]
    unit = {"thrpt": "ops/s", "sample": "us/op"}[mode]
    params = {"server": "h:1", "wire": "text", "operation": operation, "valueSize": "100"}
    base = {"score": 1000.0, "scoreError": 20.0, "scoreUnit": unit, "scorePercentiles": {}}
    return {
        "benchmark": f"cachemark.jmh.Memcached.{method}",
        "mode": mode,
        "threads": 2,
        "params": params,
        "primaryMetric": base | metric,
    }


def measured(*entries: dict[str, Any]) -> JmhMeasurement:
    """A measurement, from JMH's JSON."""
    kept, results = jmh.parse_results(msgspec.json.encode(entries))
    return JmhMeasurement(client="java/folsom", entries=kept, results=results)


def played(client: str, settings: JmhSettings, server: str) -> list[JmhMeasurement]:
    return list(jmh.measurements(parse_client(client, CLIENTS), settings, server))


def test_figures_in_another_unit_are_refused() -> None:
    with pytest.raises(TrialError, match="ops/us"):
        measured(entry("thrpt", "get", scoreUnit="ops/us"))


def test_the_reason_of_a_failure_is_read() -> None:
    assert jmh.failure_reason(PRINTED) == (
        "cachemark.worker.Unsupported: caffeine: no touch on the wire none"
    )
    assert jmh.failure_reason("# Warmup Iteration   1: 12 ops/s\n") == "JMH does not say why"


@pytest.mark.parametrize(
    ("client", "text"),
    [("python/pymemcache", "Java"), ("java/folsom?hashing=ketama", "no option hashing")],
)
def test_what_jmh_cannot_run_is_refused(client: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        jmh.jar(parse_client(client, CLIENTS))


def test_the_original_is_its_operations_threads_and_iterations() -> None:
    spec = parse_client("java/folsom", CLIENTS)
    *_, last = jmh.benchmarks(spec, jmh.ORIGINAL)
    text = " ".join(jmh.arguments(spec, jmh.ORIGINAL, last, "h:1"))
    for part in (
        "-p wire=binary", "-p operation=mget", "-p data=original", "-p keys=5000", "-p batch=50",
        "-p sameKeys=true", "-p depth=8", "-p timeoutMs=10000", "-t 128", "-wi 20", "-i 20",
    ):  # fmt: skip
        assert part in text


def test_profilers_are_handed_on() -> None:
    settings = JmhSettings(profilers=("gc", "stack:lines=3"))
    spec = parse_client("java/folsom", CLIENTS)
    first, *_ = jmh.benchmarks(spec, settings)
    words = jmh.arguments(spec, settings, first, "h:1")
    assert [words[at + 1] for at, word in enumerate(words) if word == "-prof"] == [
        "gc",
        "stack:lines=3",
    ]


@slow
@runs_java
def test_one_operation_of_set_get_is_eight_commands_of_four_keys() -> None:
    """By the server's own counters: as many sets as hits, four at a time, and no other keys."""
    settings = msgspec.structs.replace(
        jmh.ORIGINAL,
        operations=("set-get",),
        modes=("throughput",),
        wires=("text",),
        threads=(2,),
        timeout_ms=10_000,
        warmups=0,
        iterations=1,
        iteration_ms=300,
    )
    with running(parse_spec(MEMCACHED)) as server:
        (came,) = played("java/folsom", settings, f"remote:{server.addresses[0]}")
        stats = server.stats()
    assert came.failure == ""
    (result,) = came.results
    assert result.params["operation"] == "set-get"
    hits, sets, items = (stats.number(name) for name in ("get_hits", "cmd_set", "curr_items"))
    assert items == jmh.ORIGINAL.keys
    assert hits is not None
    assert hits % 4 == 0
    assert sets == hits + jmh.ORIGINAL.keys


@slow
@runs_java
def test_a_call_that_fails_is_no_figure() -> None:
    """A value that memcached does not take: all that JMH counts are calls, so it must not go on."""
    settings = JmhSettings(
        operations=("get",),
        modes=("throughput",),
        value_sizes=(100, 2 << 20),
        keys=2,
        warmups=0,
        iterations=1,
        iteration_ms=100,
    )
    small, large = played("java/folsom", settings, MEMCACHED)
    assert [one.params["valueSize"] for one in small.results] == ["100"]
    assert large.results == []
    assert large.failure == (
        f"throughput, get of {2 << 20} B, text, 1 thread: java.lang.IllegalStateException: "
        "set: an error of kind server"
    )


@runs_java
def test_a_jmh_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = tmp_path / "java"
    hangs.write_text("#!/bin/sh\necho waiting for a reply\nexec sleep infinity\n")
    hangs.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(jmh, "_START_S", 0.5)
    settings = JmhSettings(operations=("get",), modes=("throughput",), warmups=0, iterations=0)
    with pytest.raises(TrialError, match=r"did not end within 1 s; .*\nwaiting for a reply"):
        played("java/caffeine", settings, MEMCACHED)


# Client, wire, operation, threads that share one connection.
CELLS = [
    ("java/xmemcached", "text", "get", 1),
    ("java/folsom", "binary", "set", 4),
    ("java/elasticache", "binary", "mget", 2),
]


@slow
@runs_java
@pytest.mark.parametrize(("client", "wire", "operation", "threads"), CELLS)
def test_jmh_and_the_worker_tell_of_the_same_rate(
    client: str, wire: Any, operation: Any, threads: int, tmp_path: Path
) -> None:
    """The best second of the worker, before and after JMH, beside JMH's best iteration."""
    settings = JmhSettings(
        operations=(operation,),
        modes=("throughput",),
        wires=(wire,),
        threads=(threads,),
        timeout_ms=10_000,
        warmups=3,
        iterations=WINDOWS,
    )
    mix = ("--keys", "1000", "--key-length", "20", "--size", "100", "--mix", f"{operation}=1")
    tape = worker_driver.write_tape(tmp_path, *mix, "--run", "10", "--ops", "8192")
    with (
        running(parse_spec(MEMCACHED)) as server,
        worker_driver.started(CLIENTS[client]) as (worker, _),
    ):
        setup = Prepare(
            servers=server.addresses,
            wire=wire,
            threads=threads,
            timeout_ms=10_000,
            tape=str(tape),
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))

        def rates() -> list[float]:
            worker_driver.play(worker, RunRequest(phase="warmup", duration_ms=3000))
            return [rate() for _ in range(WINDOWS // 2)]

        def rate() -> float:
            done = worker_driver.play(worker, RunRequest(phase="measure", duration_ms=1000))
            # A machine that stands still for a second is not the best one.
            told = done.operations.get(operation, Operation(attempts=0, ok=0))
            assert told.ok == told.attempts
            return told.ok / done.elapsed_ns * 1e9

        before = rates()
        (came,) = played(client, settings, MEMCACHED)
        own = before + rates()
    assert came.failure == ""
    (entry,) = came.entries
    (theirs,) = entry["primaryMetric"]["rawData"]
    print(f"{client} {wire} {operation}, {threads} threads, best of {WINDOWS} s: ", end="")
    print(f"worker {max(own):,.0f}, JMH {max(theirs):,.0f} ops/s")
    assert max(own) / FACTOR < max(theirs) < FACTOR * max(own)


@runs_java
def test_benchmarks_that_are_done_are_not_played() -> None:
    spec, settings = ClientSpec(text=SPY.id, client=SPY), jmh.ORIGINAL
    done = {(spec.text, one) for one in jmh.benchmarks(spec, settings)}
    assert list(jmh.measurements(spec, settings, "embedded", done=done)) == []
