"""The cells for github-action-benchmark, a file for each direction.

`bigger-is-better.json` (tool: customBiggerIsBetter) has ops/s; `smaller-is-better.json`
(customSmallerIsBetter) has response times and CPU. Values are the report's, geometric means over
the valid trials; `range` is their 95 % interval, or the range of fewer than 60 trials.
"""

from cachemark.analysis.statistics import Interval
from cachemark.report.cells import cell_title
from cachemark.report.json_text import json_text
from cachemark.report.series import ALL, ExportedRun, OperationSeries, Series

ActionEntry = dict[str, object]


def render(run: ExportedRun) -> dict[str, str]:
    """File name → document."""
    parts = [(series, part) for series in run.series for part in series.parts]
    bigger = [
        entry
        for series, part in parts
        for entry in _entries(series, part, [("rate", "ops/s", 1.0, part.summary.rate)])
    ]
    smaller = [entry for pair in parts for entry in _smaller(*pair)]
    files = {"bigger-is-better.json": bigger, "smaller-is-better.json": smaller}
    return {name: json_text(entries) for name, entries in files.items()}


def _smaller(series: Series, part: OperationSeries) -> list[ActionEntry]:
    times = part.summary.response.intervals if part.summary.response else {}
    figures = [("p50", "us", 1e3, times.get(50.0)), ("p99", "us", 1e3, times.get(99.0))]
    if part.kind == ALL:
        figures += [
            ("client CPU", "us/op", 1.0, series.summary.client_cpu_us),
            ("server CPU", "us/op", 1.0, series.summary.server_cpu_us),
        ]
    return _entries(series, part, figures)


def _entries(
    series: Series, part: OperationSeries, figures: list[tuple[str, str, float, Interval | None]]
) -> list[ActionEntry]:
    summary = series.summary
    versions = f"{summary.library} {summary.library_version}, server {summary.server_version}"
    entries: list[ActionEntry] = []
    for what, unit, factor, figure in figures:
        if figure is None:
            continue
        entry: ActionEntry = {
            "name": f"{cell_title(series.cell)} · {part.kind} {what}",
            "unit": unit,
            "value": figure.value / factor,
            "extra": f"{summary.valid} of {summary.trials} trials valid\n{versions}",
        }
        if figure.low is not None and figure.high is not None:
            entry["range"] = f"{figure.low / factor:.6g} to {figure.high / factor:.6g}"
        entries.append(entry)
    return entries
