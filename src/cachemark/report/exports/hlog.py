"""The response times as an HdrHistogram interval log (`.hlog`, format 1.3).

An interval is the measured window of one valid trial. Its tag names workload, load, server, client
and kind of operation. Where the client kept the window's sections, those are intervals too, all
kinds together, so that a change within a trial is seen; their tag ends in `sections`. A trial of an
older cachemark, without the window's start, has no line; a comment counts them.
"""

import datetime

from cachemark.model import histogram
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import Sections
from cachemark.report.series import ExportedRun, Series, response_histogram, slug

_NS_PER_MS = 1e6


def render(run: ExportedRun) -> dict[str, str]:
    """The log, its intervals in the order of time."""
    known = [o for series in run.series for o in series.outcomes if o.measure_started_at]
    count = sum(len(series.outcomes) for series in run.series)
    lines = [
        "#[Histogram log format version 1.3]",
        f"#[cachemark {run.header.cachemark}, run {run.header.id}: response times in ns]",
    ]
    if len(known) < count:
        lines.append(f"#[left out: {count - len(known)} trials without their window's start]")
    if known:
        first = min(map(_window_start, known))
        when = first.strftime("%a %b %d %H:%M:%S UTC %Y")
        lines.append(f"#[StartTime: {first.timestamp():.3f} (seconds since epoch), {when}]")
    lines.append(
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    )
    intervals = [interval for series in run.series for interval in _intervals(series)]
    lines += [line for _, line in sorted(intervals)]
    return {"response.hlog": "\n".join(lines) + "\n"}


def _intervals(series: Series) -> list[tuple[float, str]]:
    cell = series.cell
    name = (cell.workload, cell.load, cell.server, cell.client)
    lines: list[tuple[float, str]] = []
    for part in series.parts:
        tag = slug(*name, part.kind)
        for outcome, window, trial in zip(
            series.outcomes, series.windows, part.trials, strict=True
        ):
            times = response_histogram(trial)
            if times and outcome.measure_started_at:
                start_s = _window_start(outcome).timestamp()
                lines.append((start_s, _line(tag, start_s, window.elapsed_ns, times)))
    for outcome, window in zip(series.outcomes, series.windows, strict=True):
        if window.sections is not None and outcome.measure_started_at:
            start_s = _window_start(outcome).timestamp()
            lines += _sections(slug(*name, "sections"), start_s, window, window.sections)
    return lines


def _sections(tag: str, start_s: float, window: Done, of: Sections) -> list[tuple[float, str]]:
    """Lines for each section. The last one also has the operations that ended after the window."""
    last = len(of.response) - 1
    lines: list[tuple[float, str]] = []
    for place, blob in enumerate(of.response):
        times = histogram.merge_encoded([blob])
        if times is not None:
            at_ns = place * of.length_ns
            rest_ns = window.elapsed_ns - at_ns if place == last else 0
            length_ns = max(of.length_ns, rest_ns)
            at_s = start_s + at_ns / 1e9
            lines.append((at_s, _line(tag, at_s, length_ns, times)))
    return lines


def _line(tag: str, start_s: float, length_ns: int, times: histogram.Histogram) -> str:
    fields = f"{start_s:.3f},{length_ns / 1e9:.3f},{times.max() / _NS_PER_MS:.3f}"
    return f"Tag={tag},{fields},{histogram.encode(times)}"


def _window_start(outcome: Outcome) -> datetime.datetime:
    return datetime.datetime.fromisoformat(outcome.measure_started_at)
