"""The published times of JMH's mode SampleTime, beside the times of the run's trials."""

import re
from collections.abc import Sequence

from cachemark.analysis.statistics import mean_half_width, min_sample_size
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.outcome import Outcome
from cachemark.model.published import PublishedTable, Row
from cachemark.report.model import Section

FIGURE = "sample_times"
_NS = 1e9
_CONFIDENCE = 0.999
_ABSENT = "–"


def section(
    table: PublishedTable, title: str, source: str, trials: Sequence[Sequence[Outcome]]
) -> Section:
    """A row for each published benchmark, and one below it for the cell that was measured."""
    percents = [percent for percent, _ in table.row[0].percentiles]
    rows: list[list[str]] = []
    for row, own in zip(table.row, trials, strict=True):
        rows.append(published_cells(row))
        if own:
            rows.append(_measured(row, own, percents))
    return Section(
        title=f"{title}, {table.unit}",
        columns=columns(percents),
        rows=rows,
        notes=[
            source,
            table.formula,
            "±: half of a 99.9 % interval; published over the samples, here over the trials' means",
            *table.remarks,
            "the published histograms are in the format `jmh`",
        ],
    )


def columns(percents: Sequence[float]) -> list[str]:
    """The columns of a table of sampled times."""
    return ["cell", "N", "mean", "±", *[f"p{percent:g}" for percent in percents]]


def published_cells(row: Row) -> list[str]:
    """A row of the page: its name, N, mean, error and percentiles."""
    figures = row.figures
    return [
        f"{row.label}, published",
        f"{figures['samples']:.0f}",
        _published_s(figures["mean_s"]),
        _published_s(figures["error_s"]),
        *[_published_percentile(row.quote, *pair) for pair in row.percentiles],
    ]


def _published_s(seconds: float) -> str:
    return f"{seconds:.3f}"


def _published_percentile(quote: str, percent: float, seconds: float) -> str:
    """In the page's form: below 0.5 ms it shows the power of ten, `≈ 10⁻⁴`."""
    found = re.search(rf"p\({percent:.4f}\) = +(.+) s/op", quote)
    return found[1] if found else _published_s(seconds)


def _measured(row: Row, trials: Sequence[Outcome], percents: Sequence[float]) -> list[str]:
    of_trials = [_response(trial) for trial in trials]
    times = [of_trial for of_trial in of_trials if of_trial]
    label = f"{row.label}, here"
    if len(times) < len(of_trials):
        return [label, *[_ABSENT] * (3 + len(percents))]
    merged = histogram.merge(times)
    error_ns = mean_half_width([of_trial.mean() for of_trial in times], _CONFIDENCE)
    return [
        label,
        str(merged.count),
        measured_s(merged.mean()),
        _ABSENT if error_ns is None else measured_s(error_ns),
        *[_percentile(merged, percent) for percent in percents],
    ]


def _response(trial: Outcome) -> Histogram | None:
    """Times of groups, the original's operation; of operations if a group has only one."""
    done = trial.measure
    if done is None:
        return None
    if len(trial.workload.sequence) > 1:
        return histogram.merge_encoded([done.groups.time]) if done.groups else None
    return histogram.merge_encoded(each.response for each in done.operations.values())


def _percentile(of: Histogram, percent: float) -> str:
    """Absent where too few operations were measured for it."""
    if 0 < percent < 100 and of.count < min_sample_size(percent):
        return _ABSENT
    return measured_s(of.percentile(percent))


def measured_s(ns: float) -> str:
    """A time of today in seconds."""
    return f"{ns / _NS:.6f}"
