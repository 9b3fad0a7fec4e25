"""JMH's results and a report of them: the original's benchmarks, some of them repeated."""

from typing import Any

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.model.jmh import ORIGINAL, JmhMeasurement, JmhSettings
from cachemark.report.jmh import JmhReport, build
from cachemark.runs import jmh

_PERCENTS = (0, 50, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999, 100)
_SHORT = msgspec.structs.replace(ORIGINAL, warmups=3, iterations=3, threads=(32,))

METHODS = {"thrpt": "throughput", "sample": "latency"}


def entry(mode: str, operation: str, wire: str = "text", **metric: Any) -> dict[str, Any]:
    """An entry of JMH's JSON: of 32 threads, with 368 times, too few for a p99.9."""
    unit = {"thrpt": "ops/s", "sample": "us/op"}[mode]
    data = {"server": "h:1", "wire": wire, "operation": operation, "valueSize": "12"}
    times = {
        "scorePercentiles": {str(float(percent)): 10.0 * percent for percent in _PERCENTS},
        "rawDataHistogram": [[[[500.0, 300], [900.0, 60]], [[5000.0, 8]]]],
    }
    base = {"score": 812.0, "scoreError": 20.0, "scoreUnit": unit, "scorePercentiles": {}}
    return {
        "jmhVersion": "1.37",
        "vmName": "A VM",
        "vmVersion": "17.0.1",
        "benchmark": f"cachemark.jmh.Memcached.{METHODS[mode]}",
        "mode": mode,
        "threads": 32,
        "params": data | {"data": "original"},
        "primaryMetric": base | (times if mode == "sample" else {}) | metric,
    }


def measured(client: str, *entries: dict[str, Any], failure: str = "") -> JmhMeasurement:
    kept, results = jmh.parse_results(msgspec.json.encode(entries))
    return JmhMeasurement(client=client, entries=kept, results=results, failure=failure)


def original_report() -> JmhReport:
    """Two clients of the original, one of them with another profile too; one has no figure."""
    mget = "throughput, mget of 12 B, text, 32 threads: it said [bold]<b>no</b>"
    return build(
        [
            measured("java/folsom", entry("thrpt", "set-get", score=20_000.0)),
            measured("java/folsom", entry("sample", "set-get", scoreError="NaN")),
            measured("java/folsom@defaults", entry("thrpt", "set-get", score=12_345.6)),
            measured("java/spymemcached", entry("thrpt", "set-get", "binary", scoreError="NaN")),
            measured("java/spymemcached", failure=mget),
        ],
        _SHORT,
        "memcached",
    )


def resumable(
    spec: ClientSpec,
    benchmark: jmh.Benchmark,
    settings: JmhSettings,
    **changed: Any,
) -> dict[str, Any]:
    """JMH's entry of a benchmark that was played, as its JSON has it."""
    mode = {"throughput": "thrpt", "latency": "sample"}[benchmark.mode]
    of = entry(mode, benchmark.operation)
    words = jmh.parameters(spec, settings, benchmark)
    params = {name: str(value) for name, value in words.items()} | {"server": "127.0.0.1:9"}
    each = f"{settings.iteration_ms} ms"
    times = {"warmupTime": each, "measurementTime": each, "forks": settings.forks}
    counts = {"warmupIterations": settings.warmups, "measurementIterations": settings.iterations}
    return of | times | counts | {"threads": benchmark.threads, "params": params} | changed
