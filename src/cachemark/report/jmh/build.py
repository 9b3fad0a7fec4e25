"""JMH's measurements → the contents of their report. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachemark.analysis.statistics import min_sample_size
from cachemark.model.jmh import SET_GET_COMMANDS, JmhMeasurement, JmhMetric, JmhSettings, Result
from cachemark.model.plan import NO_SERVER
from cachemark.model.published import Row
from cachemark.report.jmh.model import JmhReport, JmhRow, Published, Rate, Times
from cachemark.report.originals import jmh_figures

_US_PER_S = 1e6
_TIMES_NOTE = "JMH sampled the calls that have times."
_NOTES = (
    "The means are JMH's. ± is half of its 99.9 % interval over the iterations, which are not "
    "independent of each other; JMH gives it from three iterations on.",
    "Closed loop: each thread begins an operation after the one before it.",
    "`cachemark run` counts failures and compares the client with the server's own counters; JMH "
    "does not.",
)


def build(measured: Sequence[JmhMeasurement], settings: JmhSettings, server: str) -> JmhReport:
    """The report of the measured benchmarks, which may be fewer than the settings ask for."""
    shared = "one client" if settings.connection == "shared" else "a client for each thread"
    times_note = [_TIMES_NOTE] if "latency" in settings.modes else []
    return JmhReport(
        title=f"JMH against {server}: {shared}; {_length(settings)}",
        server=server,
        settings=settings,
        jvm=list(dict.fromkeys(_jvm(entry) for each in measured for entry in each.entries)),
        rows=_rows(measured, settings),
        failures=[f"{each.client}: {each.failure}" for each in measured if each.failure],
        notes=[*_NOTES, *times_note, *_set_get_notes(settings)],
        sections=jmh_figures.sections(measured, settings),
    )


def _length(settings: JmhSettings) -> str:
    each = f"{settings.iteration_ms / 1000:g} s"
    forks = "1 fork" if settings.forks == 1 else f"{settings.forks} forks"
    return f"{forks} of {settings.warmups} + {settings.iterations} iterations of {each}"


def _jvm(entry: Mapping[str, Any]) -> str:
    names = ("vmName", "vmVersion")
    jvm = " ".join(str(entry[name]) for name in names if name in entry)
    return f"JMH {entry.get('jmhVersion', 'of unknown version')}, {jvm or 'unknown JVM'}"


def _set_get_notes(settings: JmhSettings) -> list[str]:
    if "set-get" not in settings.operations:
        return []
    depth = min(settings.depth, SET_GET_COMMANDS)
    async_note = (
        f" {depth} are sent, then all awaited; a client without futures makes one call at a time."
    )
    same = " All threads use the same four keys." if settings.same_keys else ""
    return [
        f"One operation of set-get is {SET_GET_COMMANDS} commands.{async_note if depth > 1 else ''}"
        f"{same}"
    ]


def _rows(measured: Iterable[JmhMeasurement], settings: JmhSettings) -> list[JmhRow]:
    cells: dict[tuple[str, str, str, str, int], dict[str, Result]] = {}
    for client, result in ((one.client, result) for one in measured for result in one.results):
        of = result.params
        wire = "–" if of["server"] == NO_SERVER else of["wire"]
        size = "9..12" if of.get("data") == "original" else of["valueSize"]
        cell = (client, wire, of["operation"], size, result.threads)
        cells.setdefault(cell, {})[result.mode] = result
    return [_row(cell, found, settings) for cell, found in cells.items()]


def _row(
    cell: tuple[str, str, str, str, int], found: Mapping[str, Result], settings: JmhSettings
) -> JmhRow:
    client, wire, operation, size, threads = cell
    rate, times = found.get("thrpt"), found.get("sample")
    return JmhRow(
        client=client,
        wire=wire,
        operation=operation,
        value_bytes=size,
        threads=threads,
        rate=Rate(ops_per_s=rate.metric.score, error_per_s=_error(rate.metric)) if rate else None,
        times=_times(times.metric) if times else None,
        published=_published(
            jmh_figures.published_row(client, rate, settings) if rate else None,
            jmh_figures.published_row(client, times, settings) if times else None,
        ),
    )


def _published(rate: Row | None, times: Row | None) -> Published | None:
    named = rate or times
    if named is None:
        return None
    return Published(
        benchmark=named.label,
        rate=Rate(ops_per_s=rate.figures["score_per_s"], error_per_s=rate.figures["error_per_s"])
        if rate
        else None,
        times=_published_times(times) if times else None,
    )


def _published_times(row: Row) -> Times:
    return Times(
        calls=int(row.figures["samples"]),
        mean_s=row.figures["mean_s"],
        error_s=row.figures["error_s"],
        percentiles_s={str(float(percent)): seconds for percent, seconds in row.percentiles},
    )


def _times(metric: JmhMetric) -> Times:
    error_us = _error(metric)
    return Times(
        calls=metric.calls,
        mean_s=metric.score / _US_PER_S,
        error_s=None if error_us is None else error_us / _US_PER_S,
        percentiles_s={
            percent: value / _US_PER_S
            for percent, value in metric.percentiles.items()
            if not 0 < float(percent) < 100 or metric.calls >= min_sample_size(float(percent))
        },
    )


def _error(metric: JmhMetric) -> float | None:
    """JMH writes an error that it has not as a text."""
    return None if isinstance(metric.error, str) else metric.error
