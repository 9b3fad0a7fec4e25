"""The Java clients under JMH: the jar, its command line, and its results.

The jar has the same client files as the worker, in JMH's loop instead of the worker's. A call that
fails ends its benchmark, so JMH has no figure for it. The reason is read from JMH's output.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from cachemark.analysis import number_format
from cachemark.analysis.statistics import min_sample_size
from cachemark.endpoints.clients import ClientSpec, workers_folder
from cachemark.endpoints.servers import missing, parse_spec, running
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import DECODE_ERRORS, TrialError, UsageError
from cachemark.model.plan import NO_SERVER

Mode = Literal["throughput", "latency"]
Operation = Literal["get", "gets", "gat", "mget", "set", "replace", "touch", "set-get"]
Data = Literal["random", "original"]
Wire = Literal["text", "binary"]

_SETUP = "cachemark setup java"
# Of one operation: four keys, each set and then read.
SET_GET_COMMANDS = 8
# The fork of spymemcached has its packages, so it is never in one jar with it.
_OWN_JAR = frozenset({"elasticache"})
_UNITS = {"ops/s": 1.0, "us/op": 1e3}
_POLL_S = 0.5
# Beyond its iterations: a JVM's start, and connecting and filling before each benchmark.
_START_S = 60.0
_LOG_LINES = 12
_NO_REASON = "JMH does not say why"
# Mode, wire, operation and value size: a benchmark of a client.
Key = tuple[str, ...]
_PARTS = ("wire", "operation", "valueSize")
_BENCHMARK = re.compile(r"# Benchmark: .*\.(\w+)$")
_PARAMETERS = re.compile(r"# Parameters: \((.*)\)$")
# The last columns of a row are times.
TIME_COLUMNS = 3
COLUMNS = ("client", "wire", "operation", "value", "threads", "ops/s", "p50", "p99", "p99.9")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for JMH. Each operation and value size is a separate benchmark."""

    operations: tuple[Operation, ...] = ("get", "set")
    modes: tuple[Mode, ...] = ("throughput", "latency")
    wires: tuple[Wire, ...] = ("text",)
    data: Data = "random"
    value_sizes: tuple[int, ...] = (100,)
    keys: int = 1000
    batch: int = 10
    same_keys: bool = False
    depth: int = 1
    threads: tuple[int, ...] = (1,)
    connection: Literal["shared", "own"] = "shared"
    timeout_ms: int = 1000
    forks: int = 1
    warmups: int = 5
    iterations: int = 5
    iteration_ms: int = 1000
    profilers: tuple[str, ...] = ()


# memcached-java-clients-benchmark: its operations, data, threads and iterations. Later figures of
# its author are of 128 threads. It waited for answers without a limit, or for seconds.
ORIGINAL = Settings(
    operations=("set-get", "mget"),
    wires=("text", "binary"),
    data="original",
    value_sizes=(12,),
    keys=5000,
    batch=50,
    same_keys=True,
    depth=8,
    threads=(32, 128),
    timeout_ms=10_000,
    warmups=20,
    iterations=20,
)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of JMH's JSON; an unknown error is the string NaN."""

    score: float
    error: float | str = msgspec.field(name="scoreError")
    unit: str = msgspec.field(name="scoreUnit")
    percentiles: dict[str, float] = msgspec.field(name="scorePercentiles")
    samples: list[list[list[tuple[float, int]]]] = msgspec.field(
        name="rawDataHistogram", default_factory=list
    )


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark in one mode, as in JMH's JSON."""

    benchmark: str
    mode: str
    threads: int
    params: dict[str, str]
    metric: Metric = msgspec.field(name="primaryMetric")


class JmhMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a client: JMH's entries, the same decoded, and benchmarks without a figure."""

    client: str
    entries: list[Any]
    results: list[Result]
    missing_benchmarks: list[str]


def jar(spec: ClientSpec) -> Path:
    """The path of the jar with a client. Raises UsageError."""
    runtime, _, name = spec.client.id.partition("/")
    if runtime != "java":
        raise UsageError(f"{spec.text}: JMH runs Java clients", "`cachemark clients` lists them")
    known = {"profile"}
    if odd := sorted(spec.options.keys() - known):
        raise UsageError(f"{spec.text}: no option {odd[0]} under JMH", "it has profile")
    prefix = f"{name}-" if name in _OWN_JAR else ""
    path = workers_folder() / "java" / "jmh" / "target" / f"{prefix}benchmarks.jar"
    if not path.exists() or shutil.which("java") is None:
        raise UsageError(f"{spec.text}: its JMH jar is not set up", _SETUP)
    return path


def arguments(spec: ClientSpec, settings: Settings, address: str, threads: int) -> list[str]:
    """JMH's arguments for a client, a server and a number of threads. Pure."""
    parameters: dict[str, object] = {
        "client": spec.client.id.partition("/")[2],
        "server": address,
        "wire": ",".join(wires_of(spec, settings)),
        "operation": ",".join(dict.fromkeys(settings.operations)),
        "data": settings.data,
        "valueSize": ",".join(str(size) for size in dict.fromkeys(settings.value_sizes)),
        "keys": settings.keys,
        "batch": settings.batch,
        "sameKeys": str(settings.same_keys).lower(),
        "depth": settings.depth,
        "connection": settings.connection,
        "profile": spec.options.get("profile", "common"),
        "timeoutMs": settings.timeout_ms,
    }
    words = [rf"Memcached\.({'|'.join(dict.fromkeys(settings.modes))})$"]
    for name, value in parameters.items():
        words += ["-p", f"{name}={value}"]
    for profiler in settings.profilers:
        words += ["-prof", profiler]
    words += ["-t", str(threads), "-f", str(settings.forks)]
    words += ["-wi", str(settings.warmups), "-w", f"{settings.iteration_ms}ms"]
    return [*words, "-i", str(settings.iterations), "-r", f"{settings.iteration_ms}ms"]


def wires_of(spec: ClientSpec, settings: Settings) -> tuple[str, ...]:
    """The wires to measure; one for a cache in the process, which has none."""
    wires = tuple(dict.fromkeys(settings.wires))
    return wires[:1] if spec.client.in_process else wires


def timeout_s(settings: Settings) -> float:
    """The time limit of JMH, in s: twice its iterations, and the start of every fork. Pure."""
    benchmarks = len(settings.modes) * len(settings.operations) * len(settings.value_sizes)
    forks = benchmarks * len(settings.wires) * max(1, settings.forks)
    iterations_s = (settings.warmups + settings.iterations) * settings.iteration_ms / 1e3
    return _START_S + forks * (_START_S + 2 * iterations_s)


def measure(
    spec: ClientSpec,
    settings: Settings,
    server: str,
    *,
    cpus: tuple[str, str] = ("", ""),
    on_output: Callable[[bytes], None] | None = None,
) -> JmhMeasurement:
    """Run a client's benchmarks, for each number of threads on a fresh server and on their CPUs.

    `on_output` is given JMH's own output as it comes. Raises UsageError, TrialError.
    """
    parts = [
        _measure_threads(spec, settings, server, threads, cpus=cpus, on_output=on_output)
        for threads in dict.fromkeys(settings.threads)
    ]
    return JmhMeasurement(
        client=spec.text,
        entries=[entry for part in parts for entry in part.entries],
        results=[result for part in parts for result in part.results],
        missing_benchmarks=[text for part in parts for text in part.missing_benchmarks],
    )


def _measure_threads(
    spec: ClientSpec,
    settings: Settings,
    server: str,
    threads: int,
    *,
    cpus: tuple[str, str],
    on_output: Callable[[bytes], None] | None,
) -> JmhMeasurement:
    path = jar(spec)
    target = parse_spec(NO_SERVER if spec.client.in_process else server)
    lacking = missing(target)
    if lacking is not None:
        raise UsageError(f"{target.text}: {lacking.reason}", lacking.remedy)
    with (
        temporary_folder() as folder,
        running(target, cpus=cpus[0]) as started,
    ):
        result = folder / "result.json"
        # A folder of its own: JMH lets one run at a time use the common one.
        command = ["java", f"-Djava.io.tmpdir={folder}", "-jar", str(path)]
        command += arguments(spec, settings, _address(spec, started.addresses), threads)
        command += ["-rf", "json", "-rff", str(result)]
        printed = _run_jmh(command, cpus[1], folder / "log", on_output, timeout_s(settings))
        entries, results = parse_results(result.read_bytes() if result.exists() else b"")
    return JmhMeasurement(
        client=spec.text,
        entries=entries,
        results=results,
        missing_benchmarks=missing_benchmarks(
            settings, wires_of(spec, settings), results, failure_reasons(printed)
        ),
    )


def _address(spec: ClientSpec, addresses: list[str]) -> str:
    if spec.client.in_process:
        return NO_SERVER
    if len(addresses) != 1:
        raise UsageError("JMH's clients are told of one server", "choose one that is no cluster")
    return addresses[0]


def _run_jmh(
    command: list[str],
    cpus: str,
    log: Path,
    on_output: Callable[[bytes], None] | None,
    timeout_s: float,
) -> str:
    """Run JMH, and return its output. Raises TrialError."""
    with (
        log.open("wb") as out,
        log.open("rb") as printed,
        process.start(command, cpus=cpus, stdout=out.fileno()) as child,
    ):
        until = time.monotonic() + timeout_s
        ended = False
        while not ended:
            ended = child.wait(_POLL_S)
            if on_output is not None:
                on_output(printed.read())
            if not ended and time.monotonic() > until:
                raise TrialError(
                    f"JMH did not end within {timeout_s:g} s; its last words:\n{_tail(log)}"
                )
        status, stderr = child.exited(), child.log_tail()
    if status:
        raise TrialError(f"JMH exited with status {status}:\n{_tail(log, stderr)}")
    return log.read_text(encoding="utf-8", errors="replace")


def _tail(log: Path, stderr: str = "") -> str:
    printed = log.read_text(encoding="utf-8", errors="replace") + stderr
    return "\n".join(printed.strip().splitlines()[-_LOG_LINES:])


def parse_results(document: bytes) -> tuple[list[Any], list[Result]]:
    """JMH's entries as plain values, and the same decoded. Raises TrialError."""
    if not document.strip():
        return [], []
    try:
        results = msgspec.json.decode(document, type=list[Result])
    except DECODE_ERRORS as error:
        raise TrialError(f"JMH's JSON cannot be read: {error}") from error
    for result in results:
        if result.metric.unit not in _UNITS:
            raise TrialError(f"JMH measured in {result.metric.unit}, not in ops/s or us/op")
    return msgspec.json.decode(document), results


def failure_reasons(printed: str) -> dict[Key, str]:
    """The reasons of failed benchmarks, from JMH's output. Pure."""
    reasons: dict[Key, str] = {}
    key: Key = ("",) * 4
    lines = iter(printed.splitlines())
    for line in lines:
        if match := _BENCHMARK.match(line):
            key = (match[1], "", "", "")
        elif match := _PARAMETERS.match(line):
            of = dict(part.split(" = ", 1) for part in match[1].split(", "))
            key = (key[0], *(of.get(name, "") for name in _PARTS))
        elif line.endswith("<failure>"):
            reasons[key] = next((each.strip() for each in lines if each.strip()), _NO_REASON)
    return reasons


def missing_benchmarks(
    settings: Settings, wires: Sequence[str], results: list[Result], why: dict[Key, str]
) -> list[str]:
    """The requested benchmarks without a figure, each with its reason. Pure."""
    have = {
        (one.benchmark.rpartition(".")[2], *(one.params[name] for name in _PARTS))
        for one in results
    }
    wanted: list[Key] = [
        (mode, wire, operation, str(size))
        for mode in dict.fromkeys(settings.modes)
        for wire in wires
        for operation in dict.fromkeys(settings.operations)
        for size in dict.fromkeys(settings.value_sizes)
    ]
    return [
        f"{mode}, {operation} of {size} B, {wire}: {why.get(key, _NO_REASON)}"
        for key in wanted
        if key not in have
        for mode, wire, operation, size in [key]
    ]


def table_rows(measured: JmhMeasurement) -> list[list[str]]:
    """A row for each wire, operation, value and number of threads of a client. Pure."""
    cells: dict[tuple[str, str, str, int], dict[str, Metric]] = {}
    for result in measured.results:
        of = result.params
        wire = "–" if of["server"] == NO_SERVER else of["wire"]
        size = "9..12" if of.get("data") == "original" else of["valueSize"]
        cell = (wire, of["operation"], size, result.threads)
        cells.setdefault(cell, {})[result.mode] = result.metric
    return [
        [measured.client, wire, operation, f"{size} B", str(threads), _rate(found.get("thrpt")),
         *_percentiles(found.get("sample"))]
        for (wire, operation, size, threads), found in cells.items()
    ]  # fmt: skip


def _rate(metric: Metric | None) -> str:
    if metric is None:
        return "–"
    if isinstance(metric.error, str):
        return number_format.number(metric.score)
    return f"{number_format.number(metric.score)} ±{100 * metric.error / metric.score:.1f} %"


def _percentiles(metric: Metric | None) -> list[str]:
    if metric is None:
        return ["–"] * TIME_COLUMNS
    count = sum(n for fork in metric.samples for times in fork for _, n in times)
    scale = _UNITS[metric.unit]
    return [
        number_format.time(metric.percentiles[str(p)] * scale)
        if count >= min_sample_size(p)
        else "–"
        for p in (50.0, 99.0, 99.9)
    ]
