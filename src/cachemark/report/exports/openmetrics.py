"""The run as OpenMetrics text: the valid trials of each cell, all together.

The bounds of the histograms are at 2^n − 1 and 3·2^n − 1 ns, as buckets that were recorded end
there, so every count is exact; `_sum` has the resolution of the histograms (0.1 %). Quantiles and
rates are the reader's to compute: `operations` / `measured_seconds` is ops/s.
"""

from collections.abc import Iterable, Iterator
from operator import mul

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from cachemark.analysis.statistics import answered
from cachemark.model import histogram
from cachemark.report.cells import CELL_FIELDS
from cachemark.report.series import ExportedRun, OperationSeries, Series, all_operations, cpu_us

# From 1 µs to beyond 60 s; the last bucket of all has no bound.
_BOUNDS_NS = sorted(factor * 2**n - 1 for n in range(10, 36) for factor in (1, 1.5))


def render(run: ExportedRun) -> dict[str, str]:
    """The exposition."""
    return {"openmetrics.txt": generate_latest(_Run(run)).decode("utf-8")}


class _Run(Collector):
    """The collector that prometheus_client asks for metrics."""

    def __init__(self, run: ExportedRun) -> None:
        self._source = run

    def collect(self) -> Iterable[Metric]:
        yield self._info()
        yield from self._times()
        yield from self._counts()
        yield from self._cells()

    def _info(self) -> Metric:
        header = self._source.header
        info = InfoMetricFamily("cachemark_run", "The run")
        run_labels = {
            "id": header.id,
            "created_at": header.created_at,
            "cachemark": header.cachemark,
            "experiment": header.experiment.name,
            "host": header.host.name,
            "cpu": header.host.cpu_model,
        }
        info.add_metric([], run_labels)
        return info

    def _parts(self) -> Iterator[tuple[list[str], OperationSeries]]:
        """Each kind by itself: all together would count every operation twice in a sum."""
        for series in self._source.series:
            for part in series.parts[-len(series.summary.kinds) :]:
                kind = part.summary.kind or series.summary.kinds[0].kind
                yield [*_labels(series), kind], part

    def _times(self) -> Iterator[Metric]:
        texts = {"response": "complete - intended start", "service": "complete - actual send"}
        for name, text in texts.items():
            metric = HistogramMetricFamily(
                f"cachemark_{name}", text, labels=[*CELL_FIELDS, "operation"], unit="seconds"
            )
            for labels, part in self._parts():
                encoded = [getattr(operation, name) for operation in all_operations(part)]
                if times := histogram.merge_encoded(encoded):
                    metric.add_metric(labels, _buckets(times), times.mean() * times.count / 1e9)
            yield metric

    def _counts(self) -> Iterator[Metric]:
        operations = CounterMetricFamily(
            "cachemark_operations",
            "Operations by what came of them; only ok ones were done",
            labels=[*CELL_FIELDS, "operation", "result"],
        )
        keys = CounterMetricFamily(
            "cachemark_keys",
            "Keys of ok operations that were found, or not",
            labels=[*CELL_FIELDS, "operation", "found"],
        )
        for labels, part in self._parts():
            of = part.summary
            wrong = sum(operation.wrong_values for operation in all_operations(part))
            answers = {"ok": of.ok, "not_stored": of.not_stored}
            for result, count in {**answers, **of.errors, "wrong_value": wrong}.items():
                operations.add_metric([*labels, result], count)
            for found, count in (("hit", of.hits), ("miss", of.misses)):
                if count is not None:
                    keys.add_metric([*labels, found], count)
        yield operations
        yield keys

    def _cells(self) -> Iterator[Metric]:
        trials = GaugeMetricFamily("cachemark_trials", "Trials", labels=[*CELL_FIELDS, "valid"])
        measured = _seconds("cachemark_measured", "Length of the valid trials' windows")
        client = _seconds("cachemark_client_cpu", "CPU of the client's processes for the answers")
        server = _seconds("cachemark_server_cpu", "CPU of the server for the answers")
        for series in self._source.series:
            labels, summary = _labels(series), series.summary
            trials.add_metric([*labels, "yes"], summary.valid)
            trials.add_metric([*labels, "no"], summary.trials - summary.valid)
            measured.add_metric(labels, sum(w.elapsed_ns for w in series.windows) / 1e9)
            counts = [answered(window) for window in series.windows]
            for side, family in (("client", client), ("server", server)):
                each = [used for trial in series.outcomes if (used := cpu_us(trial, side))]
                if len(each) == len(counts):
                    family.add_metric(labels, sum(map(mul, each, counts)) / 1e6)
        yield from (trials, measured, client, server)


def _seconds(name: str, text: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, labels=CELL_FIELDS, unit="seconds")


def _labels(series: Series) -> list[str]:
    cell = series.cell
    return [cell.client, cell.server, cell.workload, cell.load]


def _buckets(of: histogram.Histogram) -> list[tuple[str, float]]:
    upto = np.cumsum(of.counts)
    buckets = [
        (floatToGoString(bound / 1e9), float(upto[min(index, len(upto) - 1)]))
        for bound in _BOUNDS_NS
        for index in [histogram.bucket_index(int(bound))]
    ]
    return [*buckets, ("+Inf", float(of.count))]
