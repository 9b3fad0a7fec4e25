"""`cachemark jmh`: run the Java clients under JMH, Java's standard benchmark harness."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.markup import escape
from rich.table import Table

from cachemark import host
from cachemark.cli.output import console, write_out
from cachemark.endpoints.clients import parse_client, registry
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Placement
from cachemark.model.foreign_text import clean
from cachemark.report.console import plain_console
from cachemark.report.json_text import json_text
from cachemark.runs.jmh import (
    COLUMNS,
    JmhMeasurement,
    Mode,
    Operation,
    Settings,
    jar,
    measure,
    table_rows,
)

_ONE = Number(gte=1)
_NOTES = (
    "The means are JMH's. ± is half of its 99.9 % interval over the iterations, which are not "
    "independent of each other.",
    "Each thread makes one call at a time (closed loop). The times are those of the calls that JMH "
    "sampled.",
    "`cachemark run` counts failures and compares the client with the server's own counters; JMH "
    "does not.",
)


@dataclass(frozen=True)
class Calls:
    """The calls to measure."""

    operation: Annotated[
        tuple[Operation, ...], Parameter(negative="", help="repeat it for several")
    ] = ("get", "set")
    mode: Annotated[tuple[Mode, ...], Parameter(negative="", help="repeat it for both")] = (
        "throughput",
        "latency",
    )
    wire: Annotated[
        Literal["text", "binary"], Parameter(help="wire protocol of the network clients")
    ] = "text"
    value_size: Annotated[
        tuple[int, ...],
        Parameter(
            negative="",
            help="size of the values in bytes (may be repeated)",
            validator=Number(gte=0),
        ),
    ] = (100,)
    keys: Annotated[
        int, Parameter(help="number of keys; all are stored before", validator=_ONE)
    ] = 1000
    batch: Annotated[int, Parameter(help="number of keys in an mget", validator=_ONE)] = 10
    threads: Annotated[int, Parameter(help="JMH's -t", validator=_ONE)] = 1
    connection: Annotated[
        Literal["shared", "own"],
        Parameter(help="one client for all threads, instead of one for each"),
    ] = "shared"
    timeout_ms: Annotated[
        int, Parameter(help="time-out of one operation, in ms", validator=_ONE)
    ] = 1000


@dataclass(frozen=True)
class Iterations:
    """The length and number of iterations."""

    forks: Annotated[int, Parameter(help="JMH's -f", validator=_ONE)] = 1
    warmups: Annotated[int, Parameter(help="JMH's -wi", validator=Number(gte=0))] = 5
    iterations: Annotated[int, Parameter(help="JMH's -i", validator=_ONE)] = 5
    iteration_ms: Annotated[int, Parameter(help="JMH's -w and -r", validator=_ONE)] = 1000


def jmh(
    *clients: str,
    server: Annotated[
        str, Parameter(help="the server; `cachemark servers` lists them")
    ] = "memcached",
    cell: Annotated[Calls | None, Parameter(name="*")] = None,
    times: Annotated[Iterations | None, Parameter(name="*")] = None,
    json: Annotated[
        Path | None, Parameter(help="write JMH's results to this file, as JSON")
    ] = None,
    server_cpus: Annotated[str, Parameter(help="such as 0-1; auto; none")] = "auto",
    jvm_cpus: Annotated[str, Parameter(help="such as 2,3; auto; none")] = "auto",
    verbose: Annotated[bool, Parameter(negative="", help="show JMH's own output")] = False,
) -> int:
    """Run Java clients under JMH, each with a fresh server, and print a table.

    The exit status is 1 if a benchmark has no figure. The jar also runs without cachemark:
    `java -jar workers/java/jmh/target/benchmarks.jar -p client=folsom -p server=HOST:PORT`.
    """
    if not clients:
        raise UsageError("no client was named", "such as java/folsom, java/xmemcached@defaults")
    known = registry(process.binary_path())
    specs = [parse_client(client, known) for client in clients]
    for spec in specs:
        jar(spec)
    settings = _settings(cell or Calls(), times or Iterations())
    usable = host.usable_cpus()
    wanted = Placement(server=server_cpus, worker=jvm_cpus)
    cpus = host.placement(wanted, usable, host.cores(usable))
    errors = plain_console(stderr=True, soft_wrap=True)
    on_output = _forward_output if verbose else None
    measured: list[JmhMeasurement] = []
    for number, spec in enumerate(specs, 1):
        with errors.status(f"{escape(spec.text)} under JMH ({number} of {len(specs)})"):
            measured.append(measure(spec, settings, server, cpus=cpus, on_output=on_output))
    if json is not None:
        entries = [entry for each in measured for entry in each.entries]
        write_out(json, json_text(entries))
    return _print_results(measured, settings, server)


def _settings(cell: Calls, times: Iterations) -> Settings:
    return Settings(
        operations=cell.operation,
        modes=cell.mode,
        wire=cell.wire,
        value_sizes=cell.value_size,
        keys=cell.keys,
        batch=cell.batch,
        threads=cell.threads,
        connection=cell.connection,
        timeout_ms=cell.timeout_ms,
        forks=times.forks,
        warmups=times.warmups,
        iterations=times.iterations,
        iteration_ms=times.iteration_ms,
    )


def _forward_output(printed: bytes) -> None:
    sys.stderr.write(clean(printed.decode("utf-8", "replace")))
    sys.stderr.flush()


def _print_results(measured: list[JmhMeasurement], settings: Settings, server: str) -> int:
    print_line = console().print
    threads = "1 thread" if settings.threads == 1 else f"{settings.threads} threads"
    shared = "one client" if settings.connection == "shared" else "a client each"
    first = f"JMH against {server}: {threads}, {shared}; {_times(settings)}"
    print_line(first, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:3] else "right", no_wrap=True)
    for each in measured:
        for row in table_rows(each):
            table.add_row(*row)
    print_line(table)
    failed = [
        f"{each.client}: {failure}" for each in measured for failure in each.missing_benchmarks
    ]
    if failed:
        print_line("\nNo figure:")
    for line in failed:
        print_line(line, markup=False, soft_wrap=True)
    print_line()
    for note in _NOTES:
        print_line(note, soft_wrap=True)
    return 1 if failed else 0


def _times(settings: Settings) -> str:
    each = f"{settings.iteration_ms / 1000:g} s"
    forks = "1 fork" if settings.forks == 1 else f"{settings.forks} forks"
    return f"{forks} of {settings.warmups} + {settings.iterations} iterations of {each}"
