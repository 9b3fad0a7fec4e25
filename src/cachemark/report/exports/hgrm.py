"""The response times as HdrHistogram's percentile tables (`.hgrm`), in µs, a file for each.

All valid trials of a cell together, once for each kind of operation and once for all. This is the
whole histogram as it was recorded: unlike a report, it goes on into percentiles that few samples
stand for, and `TotalCount` says how few. Value: the bucket_highest_ns that a bucket stands for.
"""

import math
from collections.abc import Iterator

import numpy as np

from cachemark.model.histogram import (
    HIGHEST_NS,
    Histogram,
    bucket_highest_ns,
    bucket_index,
    bucket_lowest_ns,
)
from cachemark.report.series import ExportedRun, all_operations, response_histogram, slug

_NS_PER_UNIT = 1000.0
_TICKS_PER_HALF_DISTANCE = 5
_SUB_BUCKETS = 2048


def render(run: ExportedRun) -> dict[str, str]:
    """File name → table."""
    files: dict[str, str] = {}
    for series in run.series:
        cell = series.cell
        for part in series.parts:
            times = response_histogram(all_operations(part))
            if times:
                name = slug(cell.workload, cell.load, cell.server, cell.client, part.kind)
                while f"{name}.hgrm" in files:
                    name += "+"
                files[f"{name}.hgrm"] = table(times)
    return files


def table(of: Histogram) -> str:
    """One histogram's table, to the letter as HdrHistogram for Java writes it.

    PyPI's hdrhistogram has other steps, gives the deviation in another unit than the mean, and
    takes a second for each.
    """
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for value_ns, share, count in _steps(of):
        line = f"{value_ns / _NS_PER_UNIT:12.3f} {share:.12f} {count:10d}"
        lines.append(line if share == 1 else f"{line} {1 / (1 - share):14.2f}")
    mean, deviation = (ns / _NS_PER_UNIT for ns in _moments(of))
    largest = of.max() / _NS_PER_UNIT
    lines += [
        f"#[Mean    = {mean:12.3f}, StdDeviation   = {deviation:12.3f}]",
        f"#[Max     = {largest:12.3f}, Total count    = {of.count:12d}]",
        f"#[Buckets = {bucket_index(HIGHEST_NS) >> 10:12d}, SubBuckets     = {_SUB_BUCKETS:12d}]",
    ]
    return "\n".join(lines) + "\n"


def _steps(of: Histogram) -> Iterator[tuple[int, float, int]]:
    """Value, share and count at a number of steps in each half of the way that is left to 100 %."""
    used = np.flatnonzero(of.counts)
    upto = np.cumsum(of.counts[used])
    percent = 0.0
    for index, count in zip(used.tolist(), upto.tolist(), strict=True):
        while 100 * count / of.count >= percent:
            yield bucket_highest_ns(index), percent / 100, count
            halves = int(math.log(100 / (100 - percent)) / math.log(2)) + 1
            percent += 100 / (_TICKS_PER_HALF_DISTANCE * 2**halves)
            if count == of.count:  # the last value has one step more, to the end
                yield bucket_highest_ns(index), 1.0, count
                return


def _moments(of: Histogram) -> tuple[float, float]:
    """Mean and standard deviation in ns, each value taken at the middle of its bucket."""
    used = np.flatnonzero(of.counts)
    counts = of.counts[used]
    middles = np.array(
        [(bucket_lowest_ns(int(i)) + bucket_highest_ns(int(i)) + 1) // 2 for i in used]
    )
    mean = float((middles * counts).sum() / of.count)
    return mean, float(np.sqrt((((middles - mean) ** 2) * counts).sum() / of.count))
