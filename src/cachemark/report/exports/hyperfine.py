"""The cells as hyperfine's JSON: a command is one operation of a cell, a run of it one trial.

All times are seconds: `times` the window's length for each success, `user` and `system` the client
processes' CPU for each answer. Trials that do not count are no runs, so
every exit code is 0.
"""

import statistics

import msgspec

from cachemark.analysis.statistics import cpu_parts_us, ok
from cachemark.report.cells import cell_title
from cachemark.report.json_text import json_text
from cachemark.report.series import ExportedRun, Series


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
    used = [parts for parts in map(cpu_parts_us, series.outcomes) if parts]
    if len(used) == len(series.windows):
        user, system = (statistics.fmean(part) / 1e6 for part in zip(*used, strict=True))
        result |= {"user": user, "system": system}
    return result | {
        "min": min(times),
        "max": max(times),
        "times": times,
        "exit_codes": [0] * len(times),
        "parameters": msgspec.to_builtins(cell),
    }
