"""Was the window stationary, or did it contain a warm-up, a drift, or a change of level?

A change is a note, and the trial counts. To reject trials in which a client changed its own level
would select by the result: a client with slow phases would be shown without them. Only an open loop
whose response time rose throughout the window is NON_STATIONARY, because its percentiles depend on
the length of the window.

A closed loop is judged by its rate. An open loop, whose schedule sets the rate, is judged by its
mean response time. The data are slices of the window: the worker's own timeline if it reports one,
otherwise readings of the server's counters. For an open loop, these show only a rise (backlog.py).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from cachemark.analysis.verdict.backlog import backlog
from cachemark.analysis.verdict.change_points import (
    KPSS_CRITICAL,
    SeriesValues,
    kpss,
    plateaus,
    trend,
)
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import CommandCount, Finding, Plateau, Stationarity
from cachemark.model.protocol import Done, Timeline
from cachemark.model.units import plain

# Levels differ if they differ by this factor; smaller changes are normal on any machine.
_APART = float(np.log(1.1))
# The minimum length of a level: a part of the window, and a number of slices.
_MIN_PART = 0.1
_MIN_POINTS = 3
# Shorter changes are pauses of the machine, which show in the tail of the response times.
_MIN_LEVEL_NS = 250_000_000
# Slices are merged until there are at most this many, each with at least this length and this many
# operations.
_MAX_SLICES = 128
_MIN_SLICE_NS = 20_000_000
_MIN_OPS = 20
# Fewer slices, or a shorter window, do not show a steady state.
_MIN_SLICES = 15
_MIN_WINDOW_NS = 900_000_000


class _Slices(msgspec.Struct, frozen=True, kw_only=True):
    """Slices of equal length, from an instant of the window on, and the judged figure of each."""

    slice_ns: float
    values: list[float]
    from_ns: int = 0


STATIONARITY_RULES = frozenset({"warm-up", "levels", "drift"})


def check_stationarity(
    measure: Done,
    workload: Workload,
    load: Load,
    command_counts: Sequence[CommandCount] = (),
    commands: int | None = None,
) -> Stationarity:
    """Judge a window.

    `command_counts` are readings of the server's counters, used if the worker reports no timeline.
    `commands` is the increase of those counters over the window.
    """
    of = "rate" if load.schedule == "closed" else "response"
    source = "worker" if measure.timeline else "server" if command_counts else "none"
    blank = Stationarity(of=of, source=source)
    if workload.ops is not None or workload.fill_percent is not None:
        return _unjudged(
            blank, "the window ends after a number of operations, so no steady state is claimed"
        )
    if source == "none":
        return _unjudged(blank, "the worker does not record the progress of the window")
    window_ns = measure.send_elapsed_ns or measure.elapsed_ns
    if window_ns < _MIN_WINDOW_NS:
        return _unjudged(blank, "the window is shorter than a second")
    if source == "server" and of == "response":
        return backlog(blank, measure, command_counts, window_ns, commands)
    if measure.timeline:
        slices = _of_worker(measure.timeline, window_ns, of == "rate")
    else:
        # After its window the worker prepares its answer, and the server is idle: leave that out.
        slices = _of_server([reading for reading in command_counts if reading.at_ns <= window_ns])
    if len(slices.values) < _MIN_SLICES:
        text = f"too few slices: {len(slices.values)}, at least {_MIN_SLICES} are needed"
        return _unjudged(blank, text)
    return _judged(blank, slices)


def stationarity_findings(found: Stationarity) -> list[Finding]:
    """The findings; empty if the window was stationary, or could not be judged."""
    weight = "NON_STATIONARY" if _rose_throughout(found) else "note"
    if found.warmup_end_ms is not None:
        seconds = found.warmup_end_ms / 1e3
        text = f"the window began with a warm-up of {plain(seconds)} s ({_levels_text(found)})"
        figure = found.warmup_end_ms
        return [
            Finding(rule="warm-up", weight=weight, text=text, figure=figure, limit=0.0, unit="ms")
        ]
    if len(found.plateaus) > 1:
        text = f"the {_WORDS[found.of]} changed during the window: {_levels_text(found)}"
        values = [level.value for level in found.plateaus]
        # A level of 0 has no ratio, and neither have rises.
        has_ratio = min(values) > 0 and not _rises(found)
        times = max(values) / min(values) if has_ratio else None
        return [
            Finding(rule="levels", weight=weight, text=text, figure=times, limit=1.1, unit="times")
        ]
    if found.trend_percent is not None and found.kpss is not None and _drifts(found):
        percent = found.trend_percent
        text = f"the {_WORDS[found.of]} drifted by {percent:+.0f} % over the window"
        return [
            Finding(rule="drift", weight=weight, text=text, figure=percent, limit=10.0, unit="%")
        ]
    return []


_WORDS = {"rate": "rate", "response": "response time"}


def _rises(found: Stationarity) -> bool:
    """Whether the levels are rises above the minimum, not times."""
    return found.of == "response" and found.source == "server"


def _drifts(found: Stationarity) -> bool:
    # The trend of rises may fall below -100 %, which has no logarithm: it counts as a tenth.
    change = abs(float(np.log(max(0.1, 1 + (found.trend_percent or 0.0) / 100))))
    return change > _APART and (found.kpss or 0.0) > KPSS_CRITICAL


def _rose_throughout(found: Stationarity) -> bool:
    """Whether the response time of an open loop rose from the window's start to its end."""
    if found.of != "response":
        return False
    values = [plateau.value for plateau in found.plateaus]
    if len(values) < 2:
        return (found.trend_percent or 0.0) > 0
    return len(values) > 2 and all(before < after for before, after in pairwise(values))


def _levels_text(found: Stationarity) -> str:
    """The levels as text, such as `0–5 s 98.0/s, 5–30 s 1,000/s`."""
    parts: list[str] = []
    rises = "+" if _rises(found) else ""
    for level in found.plateaus:
        time = f"{rises}{plain(level.value / 1e6)} ms"
        figure = f"{level.value:,.0f}/s" if found.of == "rate" else time
        parts.append(f"{plain(level.from_ms / 1e3)}–{plain(level.to_ms / 1e3)} s {figure}")
    return ", ".join(parts)


def _unjudged(blank: Stationarity, why: str) -> Stationarity:
    return msgspec.structs.replace(blank, why=why)


def _judged(blank: Stationarity, slices: _Slices) -> Stationarity:
    logs = _logs(slices.values)
    min_length = max(
        _MIN_POINTS, round(_MIN_PART * len(logs)), math.ceil(_MIN_LEVEL_NS / slices.slice_ns)
    )
    start_ms, slice_ms = slices.from_ns / 1e6, slices.slice_ns / 1e6
    levels = [
        Plateau(
            from_ms=round(start_ms + begin * slice_ms, 3),
            to_ms=round(start_ms + end * slice_ms, 3),
            value=float(np.median(slices.values[begin:end])),
        )
        for begin, end in plateaus(logs, min_length, _APART)
    ]
    return msgspec.structs.replace(
        blank,
        slice_ms=slice_ms,
        slices=len(logs),
        plateaus=levels,
        warmup_end_ms=_warmup_end_ms(blank.of, levels),
        trend_percent=round(100 * float(np.expm1(trend(logs))), 2),
        kpss=round(kpss(logs), 3),
    )


def _logs(values: Sequence[float]) -> SeriesValues:
    """Logarithms, so that changes are factors; an empty slice counts as 1 % of the median."""
    figures = np.asarray(values, dtype=float)
    return np.log(np.maximum(figures, max(float(np.median(figures)) / 100, 1e-9)))


def _warmup_end_ms(of: str, levels: Sequence[Plateau]) -> float | None:
    """The start of the last level, if it is the best and lasts at least half of the window."""
    if len(levels) < 2:
        return None
    last, others = levels[-1], [level.value for level in levels[:-1]]
    better = last.value > max(others) if of == "rate" else last.value < min(others)
    half = last.to_ms - last.from_ms >= last.to_ms / 2
    return last.from_ms if better and half else None


def _of_worker(timeline: Timeline, window_ns: int, by_rate: bool) -> _Slices:
    """The worker's slices that lie within the window, merged as far as necessary."""
    room = window_ns // timeline.slice_ns
    if not room:
        return _Slices(slice_ns=timeline.slice_ns, values=[])
    whole = min(len(timeline.ok), room)
    # The worker's list ends with the last slice in which an operation ended.
    ok = np.zeros(room, dtype=float)
    sums = ok.copy()
    ok[:whole], sums[:whole] = timeline.ok[:whole], timeline.response_ns[:whole]
    factor = _factor(ok, timeline.slice_ns)
    count = len(ok) // factor
    ok = ok[: count * factor].reshape(count, factor).sum(axis=1)
    sums = sums[: count * factor].reshape(count, factor).sum(axis=1)
    slice_ns = timeline.slice_ns * factor
    if by_rate:
        return _Slices(slice_ns=slice_ns, values=(ok / slice_ns * 1e9).tolist())
    # A slice in which no operation ended has no response time: it gets that of the slice before.
    means = np.divide(sums, ok, out=np.full(count, np.nan), where=ok > 0)
    known = np.flatnonzero(ok)
    if not len(known):
        return _Slices(slice_ns=slice_ns, values=[])
    places = np.maximum(np.searchsorted(known, np.arange(count), side="right") - 1, 0)
    return _Slices(slice_ns=slice_ns, values=means[known[places]].tolist())


def _factor(ok: SeriesValues, slice_ns: int) -> int:
    """How many slices are merged into one, so that each is long enough and has operations."""
    typical = max(float(ok.mean()), 1e-9)
    return max(
        1,
        -(-_MIN_SLICE_NS // slice_ns),
        -(-len(ok) // _MAX_SLICES),
        min(len(ok), int(np.ceil(_MIN_OPS / typical))),
    )


def _of_server(command_counts: Sequence[CommandCount]) -> _Slices:
    """The rate between each reading and the next; they are nearly equally spaced."""
    at = np.array([reading.at_ns for reading in command_counts], dtype=float)
    done = np.array([reading.commands for reading in command_counts], dtype=float)
    if len(at) < 2:
        return _Slices(slice_ns=0.0, values=[])
    rates = np.diff(done) / np.diff(at) * 1e9
    return _Slices(
        slice_ns=float(np.median(np.diff(at))),
        values=rates.tolist(),
        from_ns=command_counts[0].at_ns,
    )
