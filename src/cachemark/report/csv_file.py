"""The report as CSV: a line for each cell and kind of operation, plain units in the names."""

from __future__ import annotations

import csv
import io

from cachemark.report.value import Report, Row
from cachemark.statistics import KindSummary

COLUMNS = (
    "client",
    "library",
    "library_version",
    "server",
    "server_version",
    "workload",
    "load",
    "operation",
    "trials",
    "valid_trials",
    "ok",
    "ops_per_s",
    "ops_per_s_low",
    "ops_per_s_high",
    "response_p50_ns",
    "response_p90_ns",
    "response_p99_ns",
    "response_p99.9_ns",
    "response_max_ns",
    "service_p50_ns",
    "service_p99_ns",
    "client_cpu_us_per_op",
    "server_cpu_us_per_op",
    "hits",
    "misses",
    "errors",
    "unsupported",
)


def render(report: Report, width: int | None) -> str:
    """The report as CSV text; `width` has no meaning here."""
    del width
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for group in report.groups:
        for row in group.rows:
            total = [row.summary.total] if row.summary.total else [None]
            for kind in [*total, *row.summary.kinds]:
                writer.writerow(_line(row, kind))
    return out.getvalue()


def _line(row: Row, kind: KindSummary | None) -> list[object]:
    summary = row.summary
    cell = summary.cell
    named = [
        cell.client,
        summary.library,
        summary.library_version,
        cell.server,
        summary.server_version,
        cell.workload,
        cell.load,
    ]
    if kind is None:
        counts = ["all", summary.trials, summary.valid]
        return [*named, *counts, *[""] * (len(COLUMNS) - len(named) - 4), summary.unsupported]
    response = kind.response.percentiles if kind.response else {}
    service = kind.service.percentiles if kind.service else {}
    whole = not kind.kind
    client_cpu, server_cpu = summary.client_cpu_us, summary.server_cpu_us
    return [
        *named,
        kind.kind or "all",
        summary.trials,
        summary.valid,
        kind.ok,
        _plain(kind.rate.value),
        _plain(kind.rate.low),
        _plain(kind.rate.high),
        *[_plain(response.get(percent)) for percent in (50.0, 90.0, 99.0, 99.9)],
        kind.response.max_ns if kind.response else "",
        *[_plain(service.get(percent)) for percent in (50.0, 99.0)],
        _plain(client_cpu.value if whole and client_cpu else None),
        _plain(server_cpu.value if whole and server_cpu else None),
        kind.hits,
        kind.misses,
        sum(kind.errors.values()),
        summary.unsupported,
    ]


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
