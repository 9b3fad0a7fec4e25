"""Sums over the slices of one sitting: totals of an arm, and ratios of two arms by round.

Everything here is *within* a sitting. It does not include what changes when all processes start
anew, which is often more than what changes from round to round. So answers come from several
sittings (`comparing.py`); this module provides their figures, and intervals that are labelled as
those within a sitting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.rounds.estimate import LogEstimate
from cachemark.analysis.statistics import median_interval, slices_cpu_us
from cachemark.model.rounds import Slices

# A slice is marked if idle arms used more than this part of a CPU meanwhile.
IDLE_CPU_LIMIT = 0.02
# An interval within the sitting is from so many batches, of so many neighbouring rounds or more.
_BATCHES = (4, 8)
_ROUNDS_OF_BATCH = 4
Column = NDArray[np.float64]
# The figures that every slice has; percentiles exist only for a whole sitting.
SliceFigure = Literal["rate", "client-cpu", "server-cpu"]


class ArmTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of an arm in one sitting. None: not available, or nothing was counted.

    CPU time per operation is over all operations of the slices, those of the lead-in included, as
    the CPU time is. `*_cores` is CPU time per wall time of the arm's own slices; `idle_cores` is
    what all other arms used meanwhile. `marked` is the number of slices in which that was above
    IDLE_CPU_LIMIT; in `stolen` slices the hypervisor took CPU time; in `empty` slices no operation
    was counted.
    """

    slices: int
    ops: int
    errors: int
    attempts: int
    elapsed_ns: int
    rate: float | None
    worker_cpu_us: float | None
    server_cpu_us: float | None
    worker_cores: float | None
    server_cores: float | None
    idle_cores: float | None
    steal_share: float | None
    marked: int
    stolen: int
    empty: int


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


def attempts(slices: Slices) -> Column:
    """All operations that each slice played: counted, failed, and in the lead-in."""
    return column(slices.ops) + column(slices.errors) + column(slices.lead_in_ops)


def arm_totals(slices: Slices) -> ArmTotals:
    """The totals of one arm's counted slices."""
    ops, elapsed_ns = sum(slices.ops), sum(slices.elapsed_ns)
    tried, wall_ns = int(attempts(slices).sum()), sum(slices.wall_ns)
    worker_ns, server_ns = _available(slices.worker_cpu_ns), _available(slices.server_cpu_ns)
    idle_ns, steal_ns = _available(slices.idle_cpu_ns), _available(slices.steal_ns)
    return ArmTotals(
        slices=len(slices.ops),
        ops=ops,
        errors=sum(slices.errors),
        attempts=tried,
        elapsed_ns=elapsed_ns,
        rate=ops / elapsed_ns * 1e9 if ops and elapsed_ns else None,
        worker_cpu_us=slices_cpu_us(slices, slices.worker_cpu_ns),
        server_cpu_us=slices_cpu_us(slices, slices.server_cpu_ns),
        worker_cores=_share(worker_ns, wall_ns),
        server_cores=_share(server_ns, wall_ns),
        idle_cores=_share(idle_ns, wall_ns),
        steal_share=_share(steal_ns, wall_ns),
        marked=int(marks(slices).sum()),
        stolen=sum(ns > 0 for ns in slices.steal_ns),
        empty=sum(count == 0 for count in slices.ops),
    )


def _available(values_ns: Sequence[int]) -> int | None:
    """The sum of a column; None if a slice does not have it."""
    return sum(values_ns) if values_ns and min(values_ns) >= 0 else None


def _share(part_ns: int | None, whole_ns: int) -> float | None:
    return part_ns / whole_ns if part_ns is not None and whole_ns else None


def marks(slices: Slices) -> NDArray[np.bool_]:
    """Which slices are marked, because idle arms used more than IDLE_CPU_LIMIT of a CPU."""
    return column(slices.idle_cpu_ns) > IDLE_CPU_LIMIT * column(slices.wall_ns)


def _fraction(slices: Slices, figure: SliceFigure) -> tuple[Column, Column] | None:
    """A figure of each slice as numerator and denominator; None if it is not available."""
    if figure == "rate":
        return column(slices.ops), column(slices.elapsed_ns)
    cpu_ns = slices.worker_cpu_ns if figure == "client-cpu" else slices.server_cpu_ns
    return None if _available(cpu_ns) is None else (column(cpu_ns), attempts(slices))


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
    """The number of each round's batch, in the order of play."""
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
