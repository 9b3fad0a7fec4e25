"""JMH's figures as CSV: a line for each benchmark of each client, with units in the names.

JMH sampled the calls that have times. `error` is half of JMH's 99.9 % interval. The columns
`published_*` have the figures of the old page, if the benchmark repeats one of it.
"""

from cachemark.report.csv_text import csv_text
from cachemark.report.jmh.model import JmhReport, JmhRow, Rate, Times

# As JMH writes them in its JSON; the column's name is shorter.
_PERCENTS = ("0.0", "50.0", "90.0", "95.0", "99.0", "99.9", "99.99", "99.999", "99.9999", "100.0")
_FIGURES = (
    "ops_per_s", "error_per_s", "calls", "mean_s", "error_s",
    *[f"p{float(percent):g}_s" for percent in _PERCENTS],
)  # fmt: skip
COLUMNS = (
    "client", "server", "wire", "operation", "value_bytes", "threads", "connection", "forks",
    "warmups", "iterations", "iteration_ms", *_FIGURES,
    "published_benchmark", *[f"published_{name}" for name in _FIGURES],
)  # fmt: skip


def render(report: JmhReport) -> str:
    """The report as CSV text."""
    return csv_text([COLUMNS, *[_line(report, row) for row in report.rows]])


def _line(report: JmhReport, row: JmhRow) -> list[object]:
    of = report.settings
    old = row.published
    return [
        *(row.client, report.server, row.wire, row.operation, row.value_bytes, row.threads),
        *(of.connection, of.forks, of.warmups, of.iterations, of.iteration_ms),
        *_figures(row.rate, row.times),
        old.benchmark if old else "",
        *_figures(old.rate if old else None, old.times if old else None),
    ]


def _figures(rate: Rate | None, times: Times | None) -> list[object]:
    seconds = times.percentiles_s if times else {}
    return [
        *([rate.ops_per_s, rate.error_per_s] if rate else ["", ""]),
        *([times.calls, times.mean_s, times.error_s] if times else ["", "", ""]),
        *[seconds.get(percent, "") for percent in _PERCENTS],
    ]
