"""The response times as an HdrHistogram interval log (`.hlog`, format 1.3).

An interval is the measured window of one valid trial. Its tag names workload, load, server, client
and kind of operation. A trial whose window's start was not kept (one of an older cachemark) has no
line; a comment says how many there were.
"""

from __future__ import annotations

import datetime

from cachemark import histogram
from cachemark.outcome import Outcome
from cachemark.report.series import Series, Source, responses, slug

_NS_PER_MS = 1e6


def render(source: Source) -> dict[str, str]:
    """The log, its intervals in the order of time."""
    known = [o for series in source.series for o in series.outcomes if o.measure_started_at]
    count = sum(len(series.outcomes) for series in source.series)
    lines = [
        "#[Histogram log format version 1.3]",
        f"#[cachemark {source.header.cachemark}, run {source.header.id}: response times in ns]",
    ]
    if len(known) < count:
        lines.append(f"#[left out: {count - len(known)} trials without their window's start]")
    if known:
        first = min(map(_began, known))
        when = first.strftime("%a %b %d %H:%M:%S UTC %Y")
        lines.append(f"#[StartTime: {first.timestamp():.3f} (seconds since epoch), {when}]")
    lines.append(
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    )
    intervals = [found for series in source.series for found in _intervals(series)]
    lines += [line for _, line in sorted(intervals)]
    return {"response.hlog": "\n".join(lines) + "\n"}


def _intervals(series: Series) -> list[tuple[float, str]]:
    cell = series.cell
    found: list[tuple[float, str]] = []
    for part in series.parts:
        tag = slug(cell.workload, cell.load, cell.server, cell.client, part.kind)
        for outcome, window, trial in zip(
            series.outcomes, series.windows, part.trials, strict=True
        ):
            times = responses(trial)
            if times and outcome.measure_started_at:
                start_s = _began(outcome).timestamp()
                fields = (
                    f"{start_s:.3f},{window.elapsed_ns / 1e9:.3f},{times.max() / _NS_PER_MS:.3f}"
                )
                found.append((start_s, f"Tag={tag},{fields},{histogram.encode(times)}"))
    return found


def _began(outcome: Outcome) -> datetime.datetime:
    return datetime.datetime.fromisoformat(outcome.measure_started_at)
