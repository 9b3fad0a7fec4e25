"""The trials as Google Benchmark's JSON: each valid trial is a repetition of its cell.

`real_time` is the window's length for each operation, all kinds together, and `cpu_time` the
client processes' CPU for each; a worker that does not tell its CPU has none. Percentiles are of the
response time, as counters; one that a trial has too few operations for, or that its verdict
withholds, is left out.
"""

from cachemark.analysis.statistics import ok, trial_response_ns, window_rate
from cachemark.analysis.verdict import hits_withheld
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.model.run_header import HostFacts
from cachemark.report.json_text import json_text
from cachemark.report.series import ALL, ExportedRun, OperationSeries, Series, cpu_us

_PERCENTILES = {"p50_ns": 50.0, "p99_ns": 99.0, "p99.9_ns": 99.9}


def render(run: ExportedRun) -> dict[str, str]:
    """The document."""
    entries = [
        _entry(series, family, index)
        for family, series in enumerate(run.series)
        for index in range(len(series.windows))
    ]
    document = {"context": _context(run), "benchmarks": entries}
    return {"benchmark.json": json_text(document)}


def _context(run: ExportedRun) -> dict[str, object]:
    host: HostFacts = run.header.host
    return {
        "date": run.header.created_at,
        "host_name": host.name,
        "executable": run.header.command,
        "num_cpus": len(host.usable_cpus),
        "caches": [],
        "load_avg": [host.load_1min],
        "library_version": f"cachemark {run.header.cachemark}",
        "library_build_type": "release",
        "json_schema_version": 1,
        "left_out": run.left_out,
    }


def _entry(series: Series, family: int, index: int) -> dict[str, object]:
    cell, window, trial = series.cell, series.windows[index], series.outcomes[index]
    name = f"{cell.workload}/{cell.load}/{cell.server}/{cell.client}"
    entry: dict[str, object] = {
        "name": name,
        "family_index": family,
        "per_family_instance_index": 0,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": len(series.windows),
        "repetition_index": index,
        "threads": series.callers,
        "iterations": ok(window),
        "real_time": window.elapsed_ns / ok(window),
        "time_unit": "ns",
        "items_per_second": window_rate(trial),
    }
    used = {"cpu_time": cpu_us(trial, "client"), "server_cpu_ns": cpu_us(trial, "server")}
    entry |= {name: us * 1e3 for name, us in used.items() if us}
    for part in series.parts:
        entry |= _counters(part, trial)
    return entry | _counts(trial, window)


def _counters(part: OperationSeries, trial: Outcome) -> dict[str, object]:
    prefix, kind = ("", "") if part.kind == ALL else (f"{part.kind}_", part.kind)
    counters = {
        f"{prefix}{name}": trial_response_ns(trial, percent, kind)
        for name, percent in _PERCENTILES.items()
    }
    return {name: value for name, value in counters.items() if value is not None}


def _counts(trial: Outcome, window: Done) -> dict[str, object]:
    operations = window.operations.values()
    others: dict[str, object] = {
        "not_stored": sum(operation.not_stored for operation in operations),
        "errors": sum(sum(operation.errors.values()) for operation in operations),
    }
    if hits_withheld(trial):
        return others
    return {
        "hits": sum(operation.found for operation in operations),
        "misses": sum(operation.misses for operation in operations),
        **others,
    }
