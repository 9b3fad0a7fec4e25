"""A run in JMH's terms, for the two forms that JMH has: JSON and text.

A benchmark is `experiment.workload`, its parameters are the cell, a fork is a valid trial with one
iteration. Mode `thrpt` counts operations of all kinds together; if the workload has a sequence, it
counts passes of the sequence, and `operation` is `sequence`. Mode `sample` has the response times
of a kind; of passes of the sequence if every trial has them (`operation` is `sequence`).

As in JMH a score is an arithmetic mean, and its error half of a 99.9 % Student's t interval, which
needs three forks. Unlike JMH, the error of `sample` is over the forks' means: the operations of a
trial depend on each other, and an interval over them would be far too narrow.
"""

import msgspec

from cachemark.analysis.statistics import mean_half_width, min_sample_size, window_rate
from cachemark.model.histogram import Histogram
from cachemark.report.series import (
    SEQUENCE,
    ExportedRun,
    OperationSeries,
    Series,
    all_operations,
    response_histogram,
)

CONFIDENCE = 0.999
PERCENTILES = (0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 100.0)
NS_PER_UNIT = 1000.0


class JmhResult(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark in one mode; `rates` of a thrpt, `times` of a sample, for each fork."""

    series: Series
    benchmark: str
    params: dict[str, str]
    mode: str
    unit: str
    score: float
    error: float | None
    count: int
    rates: list[float] = []
    times: list[Histogram] = []
    merged: Histogram | None = None


def results(run: ExportedRun) -> list[JmhResult]:
    """All results of a run: throughput first, then samples, as JMH lists its modes."""
    name = run.header.experiment.name
    rates = [_throughput(name, series) for series in run.series]
    samples = [
        _sample(name, series, p)
        for series in run.series
        for p in [*filter(None, [series.groups]), *series.parts]
    ]
    return rates + [sample for sample in samples if sample]


def _throughput(name: str, series: Series) -> JmhResult:
    sequence = series.workload.sequence
    each = max(1, len(sequence))
    rates = [(window_rate(outcome) or 0.0) / each for outcome in series.outcomes]
    return JmhResult(
        series=series,
        benchmark=_benchmark(name, series),
        params=_params(series, SEQUENCE if sequence else series.parts[0].kind),
        mode="thrpt",
        unit="ops/s",
        score=sum(rates) / len(rates),
        error=mean_half_width(rates, CONFIDENCE),
        count=len(rates),
        rates=rates,
    )


def _sample(name: str, series: Series, part: OperationSeries) -> JmhResult | None:
    """None where no trial has response times, or one of them has none."""
    merged = response_histogram(all_operations(part))
    times = [of_trial for of_trial in map(response_histogram, part.trials) if of_trial]
    if merged is None or len(times) < len(part.trials):
        return None
    return JmhResult(
        series=series,
        benchmark=_benchmark(name, series),
        params=_params(series, part.kind),
        mode="sample",
        unit="us/op",
        score=merged.mean() / NS_PER_UNIT,
        error=mean_half_width([of.mean() / NS_PER_UNIT for of in times], CONFIDENCE),
        count=merged.count,
        times=times,
        merged=merged,
    )


def _benchmark(name: str, series: Series) -> str:
    """JMH's readers split a name at its last dot, into a class and a method."""
    return f"{name.replace('.', '_')}.{series.workload.name.replace('.', '_')}"


def _params(series: Series, operation: str) -> dict[str, str]:
    cell = series.cell
    return {"client": cell.client, "load": cell.load, "operation": operation, "server": cell.server}


def percentile(result: JmhResult, percent: float) -> float | None:
    """A percentile of the values whose mean is the score; None where too few support it.

    Of a few rates, where nothing else makes sense, it is interpolated as JMH does.
    """
    if result.merged is None:
        return _interpolated(sorted(result.rates), percent)
    if 0 < percent < 100 and result.merged.count < min_sample_size(percent):
        return None
    return result.merged.percentile(percent) / NS_PER_UNIT


def _interpolated(values: list[float], percent: float) -> float:
    position = percent * (len(values) + 1) / 100
    below = int(position)
    if below < 1:
        return values[0]
    if below >= len(values):
        return values[-1]
    return values[below - 1] + (position - below) * (values[below] - values[below - 1])
