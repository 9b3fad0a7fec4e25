"""Sums over the slices of one sitting: totals of an arm, and ratios of two arms by round.

Everything here is *within* a sitting. It does not include what changes when all processes start
anew, which is often more than what changes from round to round. So answers come from several
sittings (`comparing.py`); this module provides their figures, and intervals that are labelled as
those within a sitting.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.rounds.estimate import LogEstimate
from cachemark.analysis.statistics import median_interval
from cachemark.model.rounds import Slices

# An interval within the sitting has 2 to 8 batches, each of 4 neighbouring rounds if possible.
_BATCHES = (2, 8)
_ROUNDS_OF_BATCH = 4
Column = NDArray[np.float64]
# The figures that every slice has; percentiles exist only for a whole sitting.
SliceFigure = Literal["rate", "client-cpu", "server-cpu"]


class TypicalRound(msgspec.Struct, frozen=True, kw_only=True):
    """The median over rounds of the ratio of two arms, with its exact order-statistic interval.

    It describes the typical slice. Rare slow slices, such as collections of garbage, are in the
    ratio of totals and not in this median. `lag1` is the correlation of neighbouring rounds; the
    interval is exact only if that is small.
    """

    rounds: int
    ratio: float
    low: float
    high: float
    lag1: float | None


def column(values: Sequence[int]) -> Column:
    """A column of slices as an array."""
    return np.asarray(values, dtype=float)


def total_rate(slices: Slices) -> float | None:
    """Operations per second over all counted slices of an arm; None if nothing was counted."""
    ops, elapsed_ns = sum(slices.ops), sum(slices.elapsed_ns)
    return ops / elapsed_ns * 1e9 if ops and elapsed_ns else None


def _fraction(slices: Slices, figure: SliceFigure) -> tuple[Column, Column] | None:
    """A figure of each slice as numerator and denominator; None if it is not available."""
    if figure == "rate":
        return column(slices.ops), column(slices.elapsed_ns)
    cpu_ns = slices.worker_cpu_ns if figure == "client-cpu" else slices.server_cpu_ns
    if not cpu_ns or min(cpu_ns) < 0:
        return None
    # All that each slice played: counted, failed, and in the lead-in.
    played = column(slices.ops) + column(slices.errors) + column(slices.lead_in_ops)
    return column(cpu_ns), played


def _rounds_of_both(first: Slices, second: Slices) -> tuple[list[int], list[int]]:
    """Where the rounds that both arms played are in their columns."""
    places = [
        {place: index for index, place in enumerate(zip(of.square, of.row, strict=True))}
        for of in (first, second)
    ]
    shared = [place for place in places[0] if place in places[1]]
    return [places[0][place] for place in shared], [places[1][place] for place in shared]


def round_log_ratios(first: Slices, second: Slices, figure: SliceFigure = "rate") -> Column:
    """ln(first / second) of each round that both arms played, in the order of play.

    A round in which only one arm has the value 0 is −∞ or ∞; one in which both have it is left out.
    """
    here, there = _rounds_of_both(first, second)
    parts = _fraction(first, figure), _fraction(second, figure)
    if parts[0] is None or parts[1] is None:
        return np.empty(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(parts[0][0][here] / parts[0][1][here]) - np.log(
            parts[1][0][there] / parts[1][1][there]
        )
    return logs[~np.isnan(logs)]


def typical_round(log_ratios: Sequence[float] | Column, confidence: float) -> TypicalRound | None:
    """The median of rounds; None if there are none."""
    interval = median_interval(list(log_ratios), confidence)
    if interval is None:
        return None
    ratio, low, high = (float(np.exp(value)) for value in interval)
    return TypicalRound(
        rounds=len(log_ratios), ratio=ratio, low=low, high=high, lag1=lag1(log_ratios)
    )


def lag1(values: Sequence[float] | Column) -> float | None:
    """The lag-1 autocorrelation; None for fewer than 10 finite values, or without variation."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if len(finite) < 10:
        return None
    centred = finite - finite.mean()
    variance = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / variance if variance > 0 else None


def ratio_of_totals(
    first: Slices, second: Slices, figure: SliceFigure = "rate"
) -> LogEstimate | None:
    """ln of the ratio of two arms' totals, with the error *within* this sitting.

    The error is that of a ratio estimator (Cochran, Sampling Techniques, 6.4): the part of each
    batch in the deviation of both totals, to the first order. A batch is some rounds in a row: one
    round is like the next, so with each for itself the error would be too small. None without
    rounds, or if an arm has a total of 0.
    """
    here, there = _rounds_of_both(first, second)
    parts = _fraction(first, figure), _fraction(second, figure)
    if parts[0] is None or parts[1] is None or not here:
        return None
    batch = _batches(len(here))
    one, two = _deviations(parts[0], here, batch), _deviations(parts[1], there, batch)
    if one is None or two is None:
        return None
    count = len(one[1])
    difference = one[1] - two[1]
    error = float(np.sqrt(count / (count - 1) * (difference @ difference))) if count > 1 else None
    return LogEstimate(value=one[0] - two[0], error=error, degrees_of_freedom=count - 1)


def _batches(rounds: int) -> NDArray[np.int64]:
    fewest, most = _BATCHES
    count = min(rounds, max(fewest, min(most, rounds // _ROUNDS_OF_BATCH)))
    return np.arange(rounds) * count // rounds


def _deviations(
    part: tuple[Column, Column], rows: list[int], batch: NDArray[np.int64]
) -> tuple[float, Column] | None:
    """ln of the ratio of totals, and each batch's part in its deviation."""
    above, below = (np.bincount(batch, weights=of[rows]) for of in part)
    totals = float(above.sum()), float(below.sum())
    if min(totals) <= 0:
        return None
    return float(np.log(totals[0] / totals[1])), above / totals[0] - below / totals[1]
