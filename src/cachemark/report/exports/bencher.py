"""The cells in Bencher Metric Format: `throughput` in ops/s, `latency-p50` and `-p99` in ns.

Values are the report's, geometric means over the valid trials; `lower_value` and `upper_value` are
their 95 % interval, left out where there is none (with fewer than 60 trials).
"""

from cachemark.analysis.statistics import Interval
from cachemark.report.json_text import json_text
from cachemark.report.series import ExportedRun, OperationSeries, Series


def render(run: ExportedRun) -> dict[str, str]:
    """The document."""
    document = {
        _name(series, part): _measures(part) for series in run.series for part in series.parts
    }
    return {"bencher.json": json_text(document)}


def _name(series: Series, part: OperationSeries) -> str:
    cell = series.cell
    return f"{cell.workload}/{cell.load}/{cell.server}/{cell.client}/{part.kind}"


def _measures(part: OperationSeries) -> dict[str, dict[str, float]]:
    summary = part.summary
    times = summary.response.intervals if summary.response else {}
    figures = {
        "throughput": summary.rate,
        "latency-p50": times.get(50.0),
        "latency-p99": times.get(99.0),
    }
    return {name: _metric(figure) for name, figure in figures.items() if figure}


def _metric(of: Interval) -> dict[str, float]:
    metric = {"value": of.value}
    if of.bounds == "interval" and of.low is not None and of.high is not None:
        metric |= {"lower_value": of.low, "upper_value": of.high}
    return metric
