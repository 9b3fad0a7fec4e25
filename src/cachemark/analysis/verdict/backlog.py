"""Stationarity of an open loop whose worker reports no timeline, from the server's counters.

Operations that were due by an instant, less those that the server had done, were waiting or in
flight. By Little's law (Operations Research 9, 1961), this number divided by the rate is the mean
response time, including send lag. The worker's own start is known only to some ms, so only the
change of this time is judged, in ns.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.verdict.change_points import SeriesValues, kpss, noise, plateaus, trend
from cachemark.model import histogram
from cachemark.model.outcome import CommandCount, Plateau, Stationarity
from cachemark.model.protocol import Done

# If the server's count differs from the client's by more than this, it counts something else.
_MISMATCH = 0.01
# Part of the mean response time. Smaller changes are normal on any machine.
_SHARE = 0.1
_ERRORS = 4
# A reading is late by a fraction of a ms, and counts whole operations: this is its resolution.
_RESOLUTION_NS = 2_000_000
_RESOLUTION_OPS = 2
# A level lasts a tenth of the window.
_MIN_PART = 0.1
_MIN_POINTS = 3
MIN_READINGS = 15


def backlog(
    blank: Stationarity,
    measure: Done,
    command_counts: Sequence[CommandCount],
    window_ns: int,
    commands: int | None,
) -> Stationarity:
    """Judge by readings of the server's counters; `commands` is their rise over the window."""
    readings = [
        reading
        for reading in command_counts
        if reading.due is not None and reading.at_ns <= window_ns
    ]
    why = _skip_reason(measure, readings, commands)
    if why:
        return msgspec.structs.replace(
            blank, why=(f"the worker does not record the progress of the window, and {why}")
        )
    each_ns = float(np.median(np.diff([reading.at_ns for reading in readings])))
    waited_ns, mean_ns = _waited_ns(readings), _mean_ns(measure)
    least = max(_MIN_POINTS, round(_MIN_PART * len(waited_ns)))
    detectable_ns = max(_RESOLUTION_NS, _RESOLUTION_OPS * _gap_ns(readings))
    parts = plateaus(waited_ns, least, max(_SHARE * mean_ns, detectable_ns))
    levels = [
        Plateau(
            from_ms=round(readings[begin].at_ns / 1e6, 3),
            to_ms=round(readings[min(end, len(readings) - 1)].at_ns / 1e6, 3),
            value=float(np.median(waited_ns[begin:end])),
        )
        for begin, end in parts
    ]
    return msgspec.structs.replace(
        blank,
        slice_ms=round(each_ns / 1e6, 3),
        slices=len(waited_ns),
        plateaus=levels,
        trend_percent=_trend_percent(waited_ns, mean_ns, detectable_ns),
        kpss=round(kpss(waited_ns), 3),
    )


def _skip_reason(measure: Done, readings: Sequence[CommandCount], commands: int | None) -> str:
    """Why the readings do not describe the operations; empty if they do."""
    if commands is None or not readings:
        return "the server reports no counters"
    if len(readings) < MIN_READINGS:
        return (
            f"there are too few readings of the server's counters: {len(readings)}, at least "
            f"{MIN_READINGS} are needed"
        )
    kinds = measure.operations.values()
    ok = sum(operation.ok for operation in kinds)
    failed = sum(operation.attempts for operation in kinds) - ok
    if abs(commands - ok) > failed + _MISMATCH * ok:
        return f"the server counted {commands} commands for {ok} operations"
    return ""


def _waited_ns(readings: Sequence[CommandCount]) -> SeriesValues:
    """Response time by Little's law at each reading, less the minimum (the start is unknown)."""
    waiting = np.array([(reading.due or 0) - reading.commands for reading in readings], dtype=float)
    waited_ns = waiting * _gap_ns(readings)
    return waited_ns - float(waited_ns.min())


def _gap_ns(readings: Sequence[CommandCount]) -> float:
    first, last = readings[0], readings[-1]
    return (last.at_ns - first.at_ns) / max(1, (last.due or 0) - (first.due or 0))


def _mean_ns(measure: Done) -> float:
    merged = histogram.merge_encoded(
        operation.response for operation in measure.operations.values()
    )
    return merged.mean() if merged else 0.0


def _trend_percent(waited_ns: SeriesValues, mean_ns: float, detectable_ns: float) -> float | None:
    """The change along the Theil–Sen line, as a percentage of the mean response time.

    None if it is below the resolution, or below four standard errors of a slope: for evenly spaced
    points, one standard error over the window is σ √(12/n).
    """
    change_ns = trend(waited_ns)
    error_ns = noise(waited_ns) * float(np.sqrt(12 / len(waited_ns)))
    if abs(change_ns) <= max(_ERRORS * error_ns, detectable_ns) or not mean_ns:
        return None
    return round(100 * change_ns / mean_ns, 2)
