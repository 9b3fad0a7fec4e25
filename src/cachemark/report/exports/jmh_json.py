"""The run as JMH's JSON, for jmh-visualizer and the like.

Fields about a Java VM are "n/a". A number that cannot be had is "NaN", as in JMH: the error of
fewer than three forks, a percentile that too few operations stand for. `rawData` has the rate of
each fork; `rawDataHistogram` the recorded times in µs with their counts.
"""

import numpy as np

from cachemark.model.histogram import Histogram, bucket_highest_ns
from cachemark.report.exports.jmh_results import (
    NS_PER_UNIT,
    PERCENTILES,
    JmhResult,
    percentile,
    results,
)
from cachemark.report.json_text import json_text
from cachemark.report.series import ExportedRun

_NA = "n/a"
_NAN = "NaN"


def render(run: ExportedRun) -> dict[str, str]:
    """The document."""
    document = [_entry(result) for result in results(run)]
    return {"jmh-result.json": json_text(document)}


def _entry(result: JmhResult) -> dict[str, object]:
    timing, workload = result.series.timing, result.series.workload
    timed = workload.ops is None and workload.fill_percent is None
    return {
        "jmhVersion": _NA,
        "benchmark": result.benchmark,
        "mode": result.mode,
        "threads": result.series.callers,
        "forks": len(result.series.windows),
        "jvm": _NA,
        "jvmArgs": [],
        "jdkVersion": _NA,
        "vmName": _NA,
        "vmVersion": _NA,
        "warmupIterations": 1 if timed and timing.warmup_ms else 0,
        "warmupTime": f"{timing.warmup_ms} ms",
        "warmupBatchSize": 1,
        "measurementIterations": 1,
        "measurementTime": f"{timing.measure_ms} ms" if timed else _NA,
        "measurementBatchSize": 1,
        "params": result.params,
        "primaryMetric": _metric(result),
        "secondaryMetrics": {},
    }


def _metric(result: JmhResult) -> dict[str, object]:
    score, error = result.score, result.error
    metric: dict[str, object] = {
        "score": score,
        "scoreError": _NAN if error is None else error,
        "scoreConfidence": [_NAN, _NAN] if error is None else [score - error, score + error],
        "scorePercentiles": {
            str(p): _NAN if (of := percentile(result, p)) is None else of for p in PERCENTILES
        },
        "scoreUnit": result.unit,
    }
    if result.mode == "thrpt":
        return metric | {"rawData": [[rate] for rate in result.rates]}
    return metric | {"rawDataHistogram": [[_counted(times)] for times in result.times]}


def _counted(of: Histogram) -> list[list[float]]:
    used = [int(index) for index in np.flatnonzero(of.counts)]
    return [[bucket_highest_ns(index) / NS_PER_UNIT, int(of.counts[index])] for index in used]
