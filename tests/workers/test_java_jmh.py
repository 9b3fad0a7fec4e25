"""The Java clients under JMH: what is read from it, and what its calls are at the server."""

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
from cachemark.model.jmh import ORIGINAL, JmhMeasurement, JmhOperation, JmhSettings, Wire
from cachemark.runs import jmh

CLIENTS = registry(process.binary_path())
SPY = CLIENTS["java/spymemcached"]
runs_java = pytest.mark.skipif(
    bool(SPY.missing()) or shutil.which("memcached") is None,
    reason=f"{SPY.setup}; apt-get install memcached",
)
MEMCACHED = "memcached:threads=1,memory=64"
# A JVM that has just begun answers late on a busy machine.
PATIENT_MS = 60_000
slow = pytest.mark.slow("JMH starts a JVM for each benchmark, and measures for seconds")
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
    *_, last = jmh.benchmarks(spec, ORIGINAL)
    text = " ".join(jmh.arguments(spec, ORIGINAL, last, "h:1"))
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


# Client, wire, operation, and threads that share one connection.
CELLS: list[tuple[str, Wire, JmhOperation, int]] = [
    ("java/folsom", "text", "set-get", 2),
    ("java/xmemcached", "text", "get", 1),
    ("java/folsom", "binary", "set", 4),
    ("java/elasticache", "binary", "mget", 2),
]


@slow
@runs_java
@pytest.mark.parametrize(("client", "wire", "operation", "threads"), CELLS)
def test_a_call_is_so_many_commands(
    client: str, wire: Wire, operation: JmhOperation, threads: int
) -> None:
    """By the server's own counters. `set-get` is eight commands, of four keys."""
    settings = msgspec.structs.replace(
        ORIGINAL,
        operations=(operation,),
        modes=("throughput",),
        wires=(wire,),
        threads=(threads,),
        timeout_ms=PATIENT_MS,
        warmups=0,
        iterations=1,
        iteration_ms=300,
    )
    with running(parse_spec(MEMCACHED)) as server:
        (came,) = played(client, settings, f"remote:{server.addresses[0]}")
        stats = server.stats()
    assert came.failure == ""
    (result,) = came.results
    assert (result.params["operation"], result.threads) == (operation, threads)
    assert result.metric.score > 0
    names = ("get_hits", "get_misses", "cmd_set", "curr_items")
    hits, misses, sets, items = (stats.number(name) or 0 for name in names)
    assert items == settings.keys
    assert misses <= threads  # some libraries try a get when they connect
    by_calls = sets - settings.keys  # besides those that fill the server
    assert (hits > 0, by_calls > 0) == (operation != "set", operation in ("set", "set-get"))
    if operation == "set-get":
        assert (hits, hits % 4) == (by_calls, 0)
    if operation == "mget":
        assert hits % settings.batch == 0


def short(wire: Wire, **changed: Any) -> JmhSettings:
    """A few hundred milliseconds of set-get, with eight commands outstanding in each thread."""
    settings = JmhSettings(
        operations=("set-get",),
        modes=("throughput",),
        wires=(wire,),
        keys=300,
        depth=8,
        threads=(2,),
        timeout_ms=PATIENT_MS,
        warmups=0,
        iterations=1,
        iteration_ms=300,
    )
    return msgspec.structs.replace(settings, **changed)


@slow
@runs_java
@pytest.mark.parametrize("client", ["java/folsom", "java/spymemcached"])
def test_several_servers_share_keys_and_calls(client: str) -> None:
    with running(parse_spec(f"cluster:3:{MEMCACHED}")) as servers:
        (came,) = played(client, short("text"), f"remote:{','.join(servers.addresses)}")
        each = servers.member_stats()
    assert came.failure == ""
    assert came.results[0].metric.score > 0
    items = [stats.number("curr_items") or 0 for stats in each]
    assert sum(items) == 300
    assert min(items) > 0
    hits = sum(stats.number("get_hits") or 0 for stats in each)
    sets = sum(stats.number("cmd_set") or 0 for stats in each)
    assert (hits > 0, hits) == (True, sets - 300)


@slow
@runs_java
@pytest.mark.parametrize(
    ("client", "wire", "options"),
    [
        ("java/folsom", "text", "tls=yes"),
        ("java/elasticache", "binary", "tls=yes"),
        ("java/folsom", "text", "auth=ann:{file}"),
        ("java/spymemcached", "binary", "auth=ann:{file},sasl=yes"),
    ],
)
def test_clients_encrypt_and_log_in_under_jmh(
    client: str, wire: Wire, options: str, tmp_path: Path
) -> None:
    if "sasl" in options and shutil.which("saslpasswd2") is None:
        pytest.skip("apt-get install sasl2-bin")
    (tmp_path / "password").write_text("correct-horse\n")
    server = f"{MEMCACHED},{options.format(file=tmp_path / 'password')}"
    (came,) = played(client, short(wire), server)
    assert came.failure == ""
    assert came.results[0].metric.score > 0
    assert "correct-horse" not in str(came)


@runs_java
def test_a_login_that_the_protocol_has_not_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("correct-horse\n")
    server = f"{MEMCACHED},auth=ann:{tmp_path / 'password'}"
    (came,) = played("java/folsom", short("binary"), server)
    assert came.results == []
    assert "the server takes no login in the binary protocol" in came.failure


@slow
@runs_java
def test_a_call_that_fails_is_no_figure() -> None:
    """A value that memcached does not take: all that JMH counts are calls, so it must not go on."""
    settings = JmhSettings(
        operations=("get",),
        modes=("throughput",),
        value_sizes=(100, 2 << 20),
        keys=2,
        timeout_ms=PATIENT_MS,
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


@runs_java
def test_benchmarks_that_are_done_are_not_played() -> None:
    spec, settings = ClientSpec(text=SPY.id, client=SPY), ORIGINAL
    done = {(spec.text, one) for one in jmh.benchmarks(spec, settings)}
    assert list(jmh.measurements(spec, settings, "embedded", done=done)) == []
