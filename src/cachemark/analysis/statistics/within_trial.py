"""Within one trial: how far its figures can be trusted as figures of that trial.

For a cell of which one trial counts, so that there is no interval over trials. What another trial
would differ by, with a fresh server and fresh processes, is not in it: it is always narrower.

The window's sections are the sample, not its requests, which resemble each other. That is
sectioning: Asmussen and Glynn, Stochastic Simulation (2007), III.5; for a rate, batch means:
Schmeiser, Operations Research 30 (1982).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy import stats

from cachemark.analysis.statistics.figures import censored_from_ns, least_sample, rate
from cachemark.analysis.statistics.interval import CONFIDENCE, Interval
from cachemark.model import histogram
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Sections

_LEAST_SECTIONS = 5
# A section holds so many times the least sample of a percentile: with fewer the intervals of
# queues at 80 % of their capacity hold the truth in fewer than 90 % of cases.
_LEAST_SAMPLES = 30
# Nearly the whole window, as the last reply may come a little before its end.
_WHOLE = 0.99


class Within(msgspec.Struct, frozen=True, kw_only=True):
    """95 % intervals of one trial's own figures; None where a section does not support one.

    `ops_per_s` is of closed loops alone: in an open loop the rate was given. Percentiles are in ns,
    of all kinds of operations together. `why`: there are none, for this reason.
    """

    sections: int = 0
    section_ms: float = 0.0
    ops_per_s: Interval | None = None
    percentiles_ns: dict[float, Interval | None] = {}
    why: str = ""


def within(trial: Outcome, percents: Sequence[float]) -> Within:
    """The intervals of one trial from its sections."""
    window = trial.measure
    if window is None or window.sections is None:
        return Within(why="the client keeps no sections")
    parts = window.sections
    if len(parts.response) < _LEAST_SECTIONS:
        return Within(why=f"{len(parts.response)} sections are too few")
    if window.elapsed_ns < _WHOLE * parts.length_ns * len(parts.response):
        return Within(why="the window ended before its time")
    closed = trial.load.schedule == "closed"
    return Within(
        sections=len(parts.response),
        section_ms=parts.length_ns / 1e6,
        ops_per_s=_rate(window, parts) if closed else None,
        percentiles_ns={percent: _percentile(window, parts, percent) for percent in percents},
    )


def sectioned(whole: float, parts: Sequence[float]) -> Interval:
    """The whole's figure q and its interval: exp(ln q ± t(k−1) · s / √k).

    With k parts and s² = Σ (ln qᵢ − ln q)² / (k−1).

    Round the whole's figure, not the parts' mean: a percentile of few is off on average, and that
    is in s then. All must be above 0.
    """
    logs = np.log(np.asarray(parts, dtype=float)) - np.log(whole)
    count = len(logs)
    error = float(np.sqrt((logs @ logs) / (count - 1) / count))
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    return Interval(
        value=whole, low=whole * float(np.exp(-reach)), high=whole * float(np.exp(reach))
    )


def least_section(percent: float) -> int:
    """Operations that each section needs for a percentile: 11,040 for p99."""
    return _LEAST_SAMPLES * least_sample(percent)


def _rate(window: Done, parts: Sections) -> Interval | None:
    rates = [ok / parts.length_ns * 1e9 for ok in parts.ok]
    whole = rate(list(window.operations.values()), window.elapsed_ns)
    return sectioned(whole, rates) if all(rates) and whole else None


def _percentile(window: Done, parts: Sections, percent: float) -> Interval | None:
    """None where a section is too small, or what timed out is reached."""
    operations = list(window.operations.values())
    blobs = [histogram.decode(op.response) for op in operations if op.response]
    sections = [histogram.decode(blob) for blob in parts.response if blob]
    if not blobs or len(sections) < len(parts.response):
        return None
    if min(section.count for section in sections) < least_section(percent):
        return None
    whole_ns = histogram.merge(blobs).percentile(percent)
    found_ns = [section.percentile(percent) for section in sections]
    censored_ns = censored_from_ns(operations)
    if censored_ns is not None and max(whole_ns, *found_ns) >= censored_ns:
        return None
    # A clock too coarse for an operation says 0.
    return sectioned(max(whole_ns, 1), [max(ns, 1) for ns in found_ns])
