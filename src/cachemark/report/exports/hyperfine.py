"""The cells as hyperfine's JSON: a command is one operation of a cell, a run of it one trial.

All times are seconds for each operation: `times` the window's length, `user` and `system` the
client processes' CPU, divided by the operations done. Trials that do not count are no runs, so
every exit code is 0.
"""

import statistics

import msgspec

from cachemark.analysis.statistics import ok
from cachemark.report.cells import cell_title
from cachemark.report.json_text import json_text
from cachemark.report.series import ExportedRun, Series, client_cpu_ns


def render(run: ExportedRun) -> dict[str, str]:
    """The document."""
    document = {"results": [_result(series) for series in run.series]}
    return {"hyperfine.json": json_text(document)}


def _result(series: Series) -> dict[str, object]:
    times = [window.elapsed_ns / 1e9 / ok(window) for window in series.windows]
    cell = series.cell
    result: dict[str, object] = {
        "command": cell_title(cell),
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
    }
    if all(client_cpu_ns(window) for window in series.windows):
        result["user"] = statistics.fmean(w.cpu_user_ns / 1e9 / ok(w) for w in series.windows)
        result["system"] = statistics.fmean(w.cpu_system_ns / 1e9 / ok(w) for w in series.windows)
    return result | {
        "min": min(times),
        "max": max(times),
        "times": times,
        "exit_codes": [0] * len(times),
        "parameters": msgspec.to_builtins(cell),
    }
