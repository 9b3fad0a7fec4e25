"""`cachemark jmh`: run the Java clients under JMH, Java's standard benchmark harness."""

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.markup import escape

from cachemark.analysis.number_format import count_of
from cachemark.cli import completers
from cachemark.cli.document_forms import write_document
from cachemark.cli.output import console, write_out
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.placement import cores, placement, usable_cpus
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.experiment import Placement
from cachemark.model.foreign_text import clean
from cachemark.model.jmh import ORIGINAL, JmhMeasurement, JmhOperation, JmhSettings, Mode, Wire
from cachemark.report.console import plain_console
from cachemark.report.jmh import RENDERERS, build
from cachemark.report.json_text import json_text
from cachemark.runs.jmh import benchmarks, jar, measurements
from cachemark.runs.jmh_progress import JmhProgress
from cachemark.runs.jmh_resume import Kept, kept_measurements

JmhForm = Literal["table", "markdown", "csv", "json", "html"]
_ONE = Number(gte=1)
_QUICK = 3
_ORIGINAL_CLIENTS = ("java/spymemcached", "java/folsom", "java/xmemcached")


@dataclass(frozen=True)
class Calls:
    """The calls to measure. A default in brackets is that without --original."""

    operation: Annotated[
        tuple[JmhOperation, ...],
        Parameter(
            help="may be repeated; set-get sets and gets four keys: eight commands [get, set]"
        ),
    ] = ()
    mode: Annotated[tuple[Mode, ...], Parameter(help="repeat it for both")] = (
        "throughput",
        "latency",
    )
    wire: Annotated[
        tuple[Wire, ...],
        Parameter(help="protocol of the network clients; repeat it for both [text]"),
    ] = ()
    value_size: Annotated[
        tuple[int, ...],
        Parameter(
            help="size of the values in bytes (may be repeated) [100]", validator=Number(gte=0)
        ),
    ] = ()
    keys: Annotated[
        int | None, Parameter(help="number of keys; all are stored first [1000]", validator=_ONE)
    ] = None
    batch: Annotated[
        int | None, Parameter(help="number of keys in an mget [10]", validator=_ONE)
    ] = None
    depth: Annotated[
        int | None,
        Parameter(
            help="set-get: number of commands to send before waiting for all of them [1]",
            validator=_ONE,
        ),
    ] = None
    same_keys: Annotated[
        bool | None,
        Parameter(
            negative="--no-same-keys", help="set-get: all threads use the same four keys [no]"
        ),
    ] = None
    threads: Annotated[tuple[int, ...], Parameter(help="JMH's -t (may be repeated) [1]")] = ()
    connection: Annotated[
        Literal["shared", "own"],
        Parameter(help="one client for all threads, instead of one for each"),
    ] = "shared"
    timeout_ms: Annotated[
        int | None, Parameter(help="time-out of one operation, in ms [1000]", validator=_ONE)
    ] = None


@dataclass(frozen=True)
class Iterations:
    """The length and number of iterations."""

    original: Annotated[
        bool,
        Parameter(
            help="the benchmarks of memcached-java-clients-benchmark: set-get and mget of 50, on "
            "5000 keys, text and binary, 32 and 128 threads, 20 + 20 iterations; time-out 10 s"
        ),
    ] = False
    quick: Annotated[bool, Parameter(help="3 + 3 iterations")] = False
    forks: Annotated[int, Parameter(help="JMH's -f", validator=_ONE)] = 1
    warmups: Annotated[int | None, Parameter(help="JMH's -wi [5]", validator=Number(gte=0))] = None
    iterations: Annotated[int | None, Parameter(help="JMH's -i [5]", validator=_ONE)] = None
    iteration_ms: Annotated[int, Parameter(help="JMH's -w and -r", validator=_ONE)] = 1000
    profiler: Annotated[
        tuple[str, ...],
        Parameter(
            help="JMH's -prof, such as gc or stack (may be repeated); shows JMH's own output"
        ),
    ] = ()


@dataclass(frozen=True)
class Output:
    """Where the figures go, and how."""

    form: Annotated[JmhForm, Parameter(name="--format", help="form of the figures")] = "table"
    out: Annotated[Path | None, Parameter(help="write the figures to this file")] = None
    json: Annotated[
        Path | None, Parameter(help="keep JMH's own results in this file, as its JSON")
    ] = None
    resume: Annotated[
        bool,
        Parameter(
            help="with --json: play only what this file does not have yet; nothing if it has all"
        ),
    ] = False
    verbose: Annotated[bool, Parameter(help="show JMH's own output")] = False


def jmh(
    *clients: Annotated[str, Parameter(completer=completers.clients, help="such as java/folsom")],
    client: completers.ClientOption = (),
    server: Annotated[
        str,
        Parameter(completer=completers.servers, help="the server; `cachemark servers` lists them"),
    ] = "memcached",
    cell: Annotated[Calls | None, Parameter(name="*")] = None,
    times: Annotated[Iterations | None, Parameter(name="*")] = None,
    output: Annotated[Output | None, Parameter(name="*")] = None,
    server_cpus: Annotated[str, Parameter(help="such as 0-1; auto; none")] = "auto",
    jvm_cpus: Annotated[str, Parameter(help="such as 2,3; auto; none")] = "auto",
) -> int:
    """Run Java clients under JMH, each with a fresh server, and print or write its figures.

    After an interruption, the table and the file of `--json` have the benchmarks that have ended,
    and `--resume` plays the rest. A file that has all is only shown again, such as in another
    `--format`. The exit status is 1 if a benchmark has no figure. The jar also runs without
    cachemark:
    `java -jar workers/java/jmh/target/benchmarks.jar -p client=folsom -p server=HOST:PORT`.
    """
    specs = _specs((*clients, *client) or (_ORIGINAL_CLIENTS if times and times.original else ()))
    settings = _settings(cell or Calls(), times or Iterations())
    usable = usable_cpus()
    wanted = Placement(server=server_cpus, worker=jvm_cpus)
    cpus = placement(wanted, usable, cores(usable))
    count = sum(len(benchmarks(spec, settings)) for spec in specs)
    shown = output or Output()
    kept = _kept(shown.json, specs, settings) if shown.resume else {}
    measured = list(kept.values())
    own = shown.verbose or bool(settings.profilers)
    try:
        with _progress(count - len(kept), settings, own=own) as on_output:
            given = partial(measurements, settings=settings, server=server, cpus=cpus, done=kept)
            _play(specs, partial(given, on_output=on_output), measured, shown.json)
    except (KeyboardInterrupt, TrialError):
        # The measurement took minutes.
        if measured:
            show(measured, settings, server, shown)
            rest = "; play the rest with the same command and --resume" if shown.json else ""
            console(stderr=shown.form != "table").print(
                f"\nThese are {len(measured)} of {count_of(count, 'benchmark')}{rest}."
            )
        raise
    return show(measured, settings, server, shown)


def _specs(named: Sequence[str]) -> list[ClientSpec]:
    """The typed clients. Raises UsageError if a jar is missing."""
    if not named:
        raise UsageError("no client was named", "such as java/folsom, java/xmemcached@defaults")
    known = registry(process.binary_path())
    specs = [parse_client(client, known) for client in named]
    for spec in specs:
        jar(spec)
    return specs


def _play(
    specs: Sequence[ClientSpec],
    each: Callable[[ClientSpec], Generator[JmhMeasurement]],
    measured: list[JmhMeasurement],
    file: Path | None,
) -> None:
    """Add the measurements of all clients to the known ones, and keep all in the file."""
    for spec in specs:
        # Closed at once if the loop ends early: it has a server.
        with closing(each(spec)) as ones:
            for one in ones:
                measured.append(one)
                if file is not None:
                    entries = [entry for of in measured for entry in of.entries]
                    write_out(file, json_text(entries), option="--json")


def _kept(path: Path | None, specs: Sequence[ClientSpec], settings: JmhSettings) -> Kept:
    """The results in the file of an interrupted run. Raises UsageError."""
    if path is None:
        raise UsageError("--resume: no file was named", "add --json FILE, as in the first run")
    try:
        document = path.read_bytes()
    except OSError as error:
        remedy = "name the file that the interrupted run wrote, or leave out --resume"
        raise UsageError(f"{path}: {error.strerror}", remedy) from error
    return kept_measurements(document, str(path), specs, settings)


@contextmanager
def _progress(
    count: int, settings: JmhSettings, *, own: bool
) -> Generator[Callable[[bytes], None]]:
    """A reader of JMH's output: it shows JMH's `own` lines, or one for each benchmark."""
    if own:
        yield _forward_output
        return
    progress = JmhProgress(count, settings, time.monotonic())
    errors = plain_console(stderr=True, soft_wrap=True)
    errors.print(progress.plan())
    with errors.status("") as status:

        def show(printed: bytes) -> None:
            for step in progress.steps(printed, time.monotonic()):
                if step.ended:
                    errors.print(step.text, markup=False)
                else:
                    status.update(escape(step.text))

        yield show


def _settings(cell: Calls, times: Iterations) -> JmhSettings:
    """The typed settings; the others are defaults, or with --original the original's."""
    base = ORIGINAL if times.original else JmhSettings()
    if times.quick:
        base = msgspec.structs.replace(base, warmups=_QUICK, iterations=_QUICK)
    if times.original and cell.value_size:
        raise UsageError("--original has values of 9 to 12 bytes", "leave out --value-size")
    typed = {
        "operations": cell.operation or None,
        "wires": cell.wire or None,
        "value_sizes": cell.value_size or None,
        "keys": cell.keys,
        "batch": cell.batch,
        "depth": cell.depth,
        "same_keys": cell.same_keys,
        "timeout_ms": cell.timeout_ms,
        "threads": cell.threads or None,
        "warmups": times.warmups,
        "iterations": times.iterations,
    }
    return msgspec.structs.replace(
        base,
        modes=cell.mode,
        connection=cell.connection,
        forks=times.forks,
        iteration_ms=times.iteration_ms,
        profilers=times.profiler,
        **{name: value for name, value in typed.items() if value is not None},
    )


def _forward_output(printed: bytes) -> None:
    sys.stderr.write(clean(printed.decode("utf-8", "replace")))
    sys.stderr.flush()


def show(measured: list[JmhMeasurement], settings: JmhSettings, server: str, shown: Output) -> int:
    """Print or write the figures; the exit status."""
    report = build(measured, settings, server)
    write_document(report, RENDERERS, shown.form, shown.out)
    return 1 if report.failures else 0
