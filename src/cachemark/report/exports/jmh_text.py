"""The run as JMH prints one: a block for each result, then the table of all.

Differences, each to keep a figure right: times are in µs, as seconds with three decimals say
nothing here; a percentile that too few operations stand for has no line; the histogram has the
last bin too, which JMH drops with its values. `Error` is as jmh_results has it. A run of the suite
that repeats a JMH benchmark has what was published at the end, with its histograms.
"""

import math

import numpy as np

from cachemark.model.histogram import Histogram, bucket_highest_ns
from cachemark.report.exports.jmh_results import (
    NS_PER_UNIT,
    PERCENTILES,
    JmhResult,
    percentile,
    results,
)
from cachemark.report.originals.quotes import quoted_lines
from cachemark.report.series import ExportedRun

_MIN_BINS = 10
_ULP = 0.001
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MODES = {"thrpt": "Throughput, ops/time", "sample": "Sampling time"}


def render(run: ExportedRun) -> dict[str, str]:
    """The text."""
    measured = results(run)
    lines = [f"# cachemark {run.header.cachemark}, run {run.header.id}"]
    lines += ["# Error: 99.9 % over trials, also of sampled times; time in us; fork = trial"]
    lines += [f"# Left out: {reason}" for reason in run.left_out]
    for result in measured:
        lines += ["", *_block(result)]
    lines += ["", *_table(measured), *quoted_lines(run.header.experiment.name)]
    return {"jmh.txt": "\n".join(lines) + "\n"}


def _block(result: JmhResult) -> list[str]:
    params = ", ".join(f"{name} = {value}" for name, value in result.params.items())
    threads = result.series.callers
    head = [
        f"# Threads: {threads} thread{'s' if threads > 1 else ''}",
        f"# Benchmark mode: {_MODES[result.mode]}",
        f"# Benchmark: {result.benchmark}",
        f"# Parameters: ({params})",
        "",
        f'Result "{result.benchmark}":',
    ]
    info = _distribution(result, result.merged) if result.merged else _scores(result)
    return [*head, *info]


def _scores(result: JmhResult) -> list[str]:
    if result.error is None:
        return [f"  {score(result.score)} {result.unit}"]
    rates, low, high = result.rates, result.score - result.error, result.score + result.error
    deviation = float(np.std(rates, ddof=1))
    return [
        f"  {score(result.score)} ±(99.9%) {error(result.error)} {result.unit} [Average]",
        f"  (min, avg, max) = ({score(min(rates))}, {score(result.score)}, {score(max(rates))}), "
        f"stdev = {error(deviation)}",
        f"  CI (99.9%): [{score(low)}, {score(high)}] (assumes normal distribution)",
    ]


def _distribution(result: JmhResult, of: Histogram) -> list[str]:
    reach = "" if result.error is None else f" ±(99.9%) {error(result.error)}"
    lines = [f"  N = {result.count}", f"  mean = {score(result.score):>10}{reach} {result.unit}"]
    lines += ["", f"  Histogram, {result.unit}:", *_bins(of)]
    lines += ["", f"  Percentiles, {result.unit}:"]
    for percent in PERCENTILES:
        value = percentile(result, percent)
        if value is not None:
            lines.append(f"    {f'p({percent:.4f})':>11} = {score(value):>10} {result.unit}")
    return lines


def _bins(of: Histogram) -> list[str]:
    used = [int(index) for index in np.flatnonzero(of.counts)]
    values = [bucket_highest_ns(index) / NS_PER_UNIT for index in used]
    counts = [int(of.counts[index]) for index in used]
    levels = bin_levels(values[0], values[-1])
    filled = [0] * (len(levels) - 1)
    for value, count in zip(values, counts, strict=True):
        at = int(np.searchsorted(levels, value, side="right")) - 1
        filled[min(at, len(filled) - 1)] += count
    width = len(score(levels[-1]))
    return [
        f"    [{low:{width}.3f}, {high:{width}.3f}) = {count} "
        for low, high, count in zip(levels, levels[1:], filled, strict=False)
    ]


def bin_levels(least: float, most: float) -> list[float]:
    """The bounds of JMH's bins: halves of a power of ten, at least ten, and one for the largest."""
    if least == most:
        return [math.nextafter(least, 0), math.nextafter(most, math.inf)]
    size = 10 ** math.floor(math.log10(most - least))
    low, high = math.floor(least / size) * size, math.ceil(most / size) * size
    while (high - low) / size < _MIN_BINS:
        size /= 2
    count = max(2, math.ceil((high - low) / size))
    return [low + number * size for number in range(count + 1 + (low + count * size <= most))]


def _table(measured: list[JmhResult]) -> list[str]:
    names = list(measured[0].params) if measured else []
    rows = [["Benchmark", *[f"({n})" for n in names], "Mode", "Cnt", "Score", "", "Error", "Units"]]
    for result in measured:
        count = str(result.count) if result.count > 1 else ""
        shown = result.error is not None and result.score >= _ULP / 2
        mark, reach = ("±", error(result.error or 0.0)) if shown else ("", "")
        figures = [result.mode, count, score(result.score), mark, reach, result.unit]
        rows.append([result.benchmark.split(".")[-1], *result.params.values(), *figures])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [_row(row, widths) for row in rows]


def _row(cells: list[str], widths: list[int]) -> str:
    """The first column left, the others right, two spaces apart, one round the sign."""
    line = cells[0].ljust(widths[0])
    for at, (cell, width) in enumerate(zip(cells[1:], widths[1:], strict=True), 1):
        before = " " if at in (len(cells) - 3, len(cells) - 2) else "  "
        line += before + cell.rjust(width)
    return line.rstrip()


def score(value: float) -> str:
    """A figure with three decimals, or about which power of ten it is."""
    if value >= _ULP / 2:
        return f"{value:.3f}"
    power = round(math.log10(value)) if value > 0 else 0
    return "≈ 10" + str(power).translate(_SUPERSCRIPT) if power else "≈ 0"


def error(value: float) -> str:
    """An error as text: at least 0.001, so that it never looks like none."""
    return f"{max(value, _ULP):.3f}"
