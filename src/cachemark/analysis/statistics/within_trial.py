"""Intervals within one trial, for a cell with only one valid trial.

They do not include the variation from trial to trial (fresh server, fresh processes), so they are
too narrow for comparisons.

The sample is the window's sections, not its requests, which are correlated. This method is called
sectioning: Asmussen and Glynn, Stochastic Simulation (2007), III.5; for a rate, batch means:
Schmeiser, Operations Research 30 (1982).
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.statistics.censored_times import CensoredTimes, censoring_threshold_ns
from cachemark.analysis.statistics.figures import is_withheld, success_share, window_rate
from cachemark.analysis.statistics.interval import CONFIDENCE, Interval
from cachemark.analysis.statistics.quantiles import t_quantile
from cachemark.model import histogram
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import Sections

_MIN_SECTIONS = 5
# A section holds this many times the least sample of a percentile. With fewer, intervals for queues
# with a utilisation of 80 % contain the true value in fewer than 90 % of cases.
_MIN_SAMPLES = 30
# Nearly the whole window: the last reply may arrive a little before its end.
_WHOLE = 0.99


class WithinTrial(msgspec.Struct, frozen=True, kw_only=True):
    """95 % intervals of one trial's figures; None if a section has too few operations for one.

    Only closed loops have `ops_per_s`, since the schedule sets the rate of an open loop.
    Percentiles are in ns, of all kinds of operations together. `why`: the reason if there are no
    intervals.
    """

    sections: int = 0
    section_ms: float = 0.0
    ops_per_s: Interval | None = None
    percentiles_ns: dict[float, Interval | None] = {}
    why: str = ""


def within(trial: Outcome, percents: Sequence[float]) -> WithinTrial:
    """The intervals of one trial from its sections."""
    window = trial.measure
    if window is None or window.sections is None:
        return WithinTrial(why="the client records no sections")
    parts = window.sections
    if len(parts.response) < _MIN_SECTIONS:
        return WithinTrial(why=f"too few sections: {len(parts.response)}")
    if window.elapsed_ns < _WHOLE * parts.length_ns * len(parts.response):
        return WithinTrial(why="the window ended early")
    # The sections of a measuring client say nothing about the rate of the load beside it.
    closed = trial.load.schedule == "closed" and trial.generators is None
    return WithinTrial(
        sections=len(parts.response),
        section_ms=parts.length_ns / 1e6,
        ops_per_s=_rate(window_rate(trial), parts, success_share(window)) if closed else None,
        percentiles_ns={
            percent: None if is_withheld(trial, percent) else _percentile(window, parts, percent)
            for percent in percents
        },
    )


def sectioning_interval(whole: float, parts: Sequence[float]) -> Interval:
    """The whole's figure q and its interval: exp(ln q ± t(k−1) · s / √k).

    With k parts and s² = Σ (ln qᵢ − ln q)² / (k−1).

    The deviations are from the whole's figure, not from the mean of the parts: percentiles of small
    samples are biased, and s includes this bias. All values must be above 0.
    """
    logs = np.log(np.asarray(parts, dtype=float)) - np.log(whole)
    count = len(logs)
    error = float(np.sqrt((logs @ logs) / (count - 1) / count))
    half_width = t_quantile((1 + CONFIDENCE) / 2, count - 1) * error
    return Interval(
        value=whole, low=whole * float(np.exp(-half_width)), high=whole * float(np.exp(half_width))
    )


def min_section_size(percent: float) -> int:
    """Operations that each section needs for a percentile: 11,040 for p99."""
    return _MIN_SAMPLES * min_sample_size(percent)


def _rate(whole: float | None, parts: Sections, share: float) -> Interval | None:
    """`share` is the successful part of the operations, which sections do not tell."""
    rates = [share * ok / parts.length_ns * 1e9 for ok in parts.ok]
    return sectioning_interval(whole, rates) if all(rates) and whole else None


def _percentile(window: Done, parts: Sections, percent: float) -> Interval | None:
    """None if a section is too small, or if the percentile reaches lower bounds."""
    operations = list(window.operations.values())
    sections = [histogram.decode(blob) for blob in parts.response if blob]
    if len(sections) < len(parts.response):
        return None
    if min(section.count for section in sections) < min_section_size(percent):
        return None
    whole = CensoredTimes(operations).percentile(percent)
    if whole is None or not whole.exact:
        return None
    found_ns = [section.percentile(percent) for section in sections]
    censored_ns = censoring_threshold_ns(operations)
    if censored_ns is not None and max(found_ns) >= censored_ns:
        return None
    # A clock too coarse for an operation says 0.
    return sectioning_interval(max(whole.ns, 1), [max(ns, 1) for ns in found_ns])
