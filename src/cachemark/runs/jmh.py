"""The Java clients under JMH: the jar, its command line, and its results.

The jar has the same client files as the worker, in JMH's loop instead of the worker's. A call that
fails ends its benchmark, so JMH has no figure for it. The reason is read from JMH's output.
"""

import shutil
import time
from collections.abc import Callable, Container, Generator, Sequence
from itertools import groupby, product, starmap
from pathlib import Path
from typing import Any

import msgspec

from cachemark.analysis.number_format import count_of
from cachemark.endpoints.clients import ClientSpec, workers_folder
from cachemark.endpoints.servers import RunningServer, missing, parse_spec, running
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import DECODE_ERRORS, TrialError, UnsupportedError, UsageError
from cachemark.model.jmh import JmhMeasurement, JmhOperation, JmhSettings, Mode, Result, Wire
from cachemark.model.plan import NO_SERVER

_SETUP = "cachemark setup java"
# The fork of spymemcached has its packages, so it is never in one jar with it.
_OWN_JAR = frozenset({"elasticache"})
_UNITS = ("ops/s", "us/op")
_POLL_S = 0.5
# Beyond its iterations: a JVM's start, and connecting and filling before each benchmark.
_START_S = 240.0
_LOG_LINES = 12
_NO_REASON = "JMH does not say why"
# Between several servers: JMH takes a comma for another value of the parameter.
_JOIN = "+"
# The variable with the clients' options for TLS and logins, as JSON.
_OPTIONS = "CACHEMARK_JMH_OPTIONS"


class Benchmark(msgspec.Struct, frozen=True):
    """The work of one start of JMH, beside the settings that all share."""

    threads: int
    mode: Mode
    wire: Wire
    operation: JmhOperation
    value_size: int

    @property
    def name(self) -> str:
        """For a message."""
        threads = count_of(self.threads, "thread")
        return f"{self.mode}, {self.operation} of {self.value_size} B, {self.wire}, {threads}"


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


def parameters(spec: ClientSpec, settings: JmhSettings, benchmark: Benchmark) -> dict[str, object]:
    """The parameters of a benchmark of a client, but for the server. Pure."""
    return {
        "client": spec.client.id.partition("/")[2],
        "wire": benchmark.wire,
        "operation": benchmark.operation,
        "data": settings.data,
        "valueSize": benchmark.value_size,
        "keys": settings.keys,
        "batch": settings.batch,
        "sameKeys": str(settings.same_keys).lower(),
        "depth": settings.depth,
        "connection": settings.connection,
        "profile": spec.options.get("profile", "common"),
        "timeoutMs": settings.timeout_ms,
    }


def arguments(
    spec: ClientSpec, settings: JmhSettings, benchmark: Benchmark, address: str
) -> list[str]:
    """JMH's arguments for a benchmark of a client. Pure."""
    words = [rf"Memcached\.{benchmark.mode}$"]
    for name, value in {**parameters(spec, settings, benchmark), "server": address}.items():
        words += ["-p", f"{name}={value}"]
    for profiler in settings.profilers:
        words += ["-prof", profiler]
    words += ["-t", str(benchmark.threads), "-f", str(settings.forks)]
    words += ["-wi", str(settings.warmups), "-w", f"{settings.iteration_ms}ms"]
    return [*words, "-i", str(settings.iterations), "-r", f"{settings.iteration_ms}ms"]


def wires_of(spec: ClientSpec, settings: JmhSettings) -> tuple[str, ...]:
    """The wires to measure; one for a cache in the process, which has none."""
    wires = tuple(dict.fromkeys(settings.wires))
    return wires[:1] if spec.client.in_process else wires


def benchmarks(spec: ClientSpec, settings: JmhSettings) -> list[Benchmark]:
    """The benchmarks of a client, each once, in the order of play. Pure."""
    parts = (
        settings.threads,
        settings.modes,
        wires_of(spec, settings),
        settings.operations,
        settings.value_sizes,
    )
    return list(starmap(Benchmark, product(*map(dict.fromkeys, parts))))


def timeout_s(settings: JmhSettings) -> float:
    """The time limit of a benchmark, in s: twice its iterations, and the starts of JVMs. Pure."""
    iterations_s = (settings.warmups + settings.iterations) * settings.iteration_ms / 1e3
    return _START_S + max(1, settings.forks) * (_START_S + 2 * iterations_s)


def measurements(
    spec: ClientSpec,
    settings: JmhSettings,
    server: str,
    *,
    cpus: tuple[str, str] = ("", ""),
    on_output: Callable[[bytes], None] | None = None,
    done: Container[tuple[str, Benchmark]] = (),
) -> Generator[JmhMeasurement]:
    """Run a client's benchmarks, except the `done` ones; yields each at its end.

    Each is a JMH of its own, as JMH writes its results when all has ended. Each number of threads
    has a fresh server. `on_output` gets JMH's own output. Raises UsageError, TrialError.
    """
    path = jar(spec)
    target = parse_spec(NO_SERVER if spec.client.in_process else server)
    lacking = missing(target)
    if lacking is not None:
        raise UsageError(f"{target.text}: {lacking.reason}", lacking.remedy)
    left = [one for one in benchmarks(spec, settings) if (spec.text, one) not in done]
    for _, group in groupby(left, lambda one: one.threads):
        with running(target, cpus=cpus[0]) as started:
            address = _JOIN.join(started.addresses) or NO_SERVER
            for benchmark in group:
                words = ["-jar", str(path), *arguments(spec, settings, benchmark, address)]
                try:
                    env = _environment(started, benchmark.wire)
                except UnsupportedError as error:
                    entries, results, why = [], [], error.text
                else:
                    entries, results, printed = _run_jmh(
                        words, env, cpus[1], on_output, timeout_s(settings)
                    )
                    why = "" if results else failure_reason(printed)
                yield JmhMeasurement(
                    client=spec.text,
                    entries=entries,
                    results=results,
                    failure=f"{benchmark.name}: {why}" if why else "",
                )


def _environment(server: RunningServer, wire: str) -> dict[str, str]:
    """How the clients encrypt and log in. Raises UnsupportedError for a protocol without it."""
    options = server.worker_options(wire)
    return {_OPTIONS: msgspec.json.encode(options).decode()} if options else {}


def _run_jmh(
    words: Sequence[str],
    env: dict[str, str],
    cpus: str,
    on_output: Callable[[bytes], None] | None,
    limit_s: float,
) -> tuple[list[Any], list[Result], str]:
    """Run JMH; its entries, the same decoded, and its output. Raises TrialError."""
    with temporary_folder() as folder:
        result = folder / "result.json"
        # A folder of its own: JMH lets one run at a time use the common one.
        command = ["java", f"-Djava.io.tmpdir={folder}", *words]
        command += ["-rf", "json", "-rff", str(result)]
        printed = _output_of(command, env, cpus, folder / "log", on_output, limit_s=limit_s)
        return *parse_results(result.read_bytes() if result.exists() else b""), printed


def _output_of(
    command: list[str],
    env: dict[str, str],
    cpus: str,
    log: Path,
    on_output: Callable[[bytes], None] | None,
    *,
    limit_s: float,
) -> str:
    """Run a command to its end. Raises TrialError."""
    with (
        log.open("wb") as out,
        log.open("rb") as printed,
        process.start(command, cpus=cpus, env=env, stdout=out.fileno()) as child,
    ):
        until = time.monotonic() + limit_s
        ended = False
        while not ended:
            ended = child.wait(_POLL_S)
            if on_output is not None:
                on_output(printed.read())
            if not ended and time.monotonic() > until:
                raise TrialError(
                    f"JMH did not end within {limit_s:g} s; its last words:\n{_tail(log)}"
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


def failure_reason(printed: str) -> str:
    """Why a benchmark failed, from JMH's output. Pure."""
    lines = iter(printed.splitlines())
    if not any(line.endswith("<failure>") for line in lines):
        return _NO_REASON
    return next((line.strip() for line in lines if line.strip()), _NO_REASON)
