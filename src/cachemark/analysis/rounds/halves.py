"""Whether an arm is as fast at the end of a slice as at its beginning.

A client whose turn begins may be slow at first: its caches are cold, its code is to be compiled
again. The lead-in is there for this. If it is too short, the second half of the counted part is
faster than the first.
"""

import math
from collections.abc import Mapping

import msgspec

from cachemark.analysis.rounds.estimate import difference, mean_of_logs
from cachemark.analysis.rounds.looks import MIN_SITTINGS
from cachemark.analysis.rounds.pairs import ArmFigures, SittingKey, Sittings
from cachemark.analysis.statistics import ALPHA, CONFIDENCE, Interval, holm
from cachemark.model.outcome import Cell

# Halves that differ by less than this factor change no answer that has a usual margin.
NOTABLE_DIFFERENCE = 1.02
# ln of the second halves' rate relative to the first, of each sitting of each arm that has halves.
LogsOfHalves = Mapping[Cell, Mapping[SittingKey, float]]


class SliceHalves(msgspec.Struct, frozen=True, kw_only=True):
    """An arm's rate in the second half of the counted part of its slices, relative to the first.

    `ratio` is the mean over `sittings` sittings, with its interval. `p_holm` is corrected over the
    arms of the run; None without an interval.
    """

    cell: Cell
    sittings: int
    ratio: Interval
    p_holm: float | None = None

    @property
    def differ(self) -> bool:
        """Whether the halves are shown to differ, by more than NOTABLE_DIFFERENCE."""
        apart = max(self.ratio.value, 1 / self.ratio.value)
        shown = self.p_holm is not None and self.p_holm < ALPHA
        return shown and apart > NOTABLE_DIFFERENCE


def logs_of_halves(sittings: Sittings) -> LogsOfHalves:
    """The halves of all arms that have them, in the order in which the arms appear.

    Left out are open loops, whose schedule sets the rate; workers that do not report the first
    half; and loads without replies, whose last operations are completed by a barrier.
    """
    logs: dict[Cell, dict[SittingKey, float]] = {}
    for key, arms in sittings.items():
        for cell, arm in arms.items():
            log = _log_ratio(arm)
            if log is not None:
                logs.setdefault(cell, {})[key] = log
    return logs


def error_of_turns(halves: LogsOfHalves, first: Cell, second: Cell) -> float:
    """The factor by which turns may move a ratio of rates; 1 if they are not shown to.

    It is twice the change of the ratio from the first half of slices to the second, by the far end
    of its interval. Simulated, that is enough for what lasts for up to a third of a slice. For more
    it would be a larger factor, which leads of 10 % would no longer pass in 95 % of runs.
    """
    one, two = (halves.get(cell, {}) for cell in (first, second))
    if min(len(one), len(two)) < MIN_SITTINGS:
        return 1.0
    both = [log - two[key] for key, log in one.items() if key in two]
    if len(both) >= MIN_SITTINGS:
        change = mean_of_logs(both)
    else:
        change = difference(mean_of_logs(list(one.values())), mean_of_logs(list(two.values())))
    ratio = change.ratio(CONFIDENCE)
    low, high = ratio.low or 1.0, ratio.high or 1.0
    return 1.0 if low <= 1 <= high else max(high, 1 / low) ** 2


def slice_halves(sittings: Sittings) -> list[SliceHalves]:
    """The halves of all arms, with their intervals."""
    logs = {cell: list(of.values()) for cell, of in logs_of_halves(sittings).items()}
    ratios = {cell: mean_of_logs(of).ratio(CONFIDENCE) for cell, of in logs.items()}
    corrected = holm({cell: of.p for cell, of in ratios.items() if of.p is not None})
    return [
        SliceHalves(cell=cell, sittings=len(of), ratio=ratios[cell], p_holm=corrected.get(cell))
        for cell, of in logs.items()
    ]


def _log_ratio(arm: ArmFigures) -> float | None:
    """ln of the second halves' rate relative to the first; None if the arm has no halves."""
    slices = arm.slices
    if arm.barriers or not slices.half_ns or min(slices.half_ns) <= 0:
        return None
    ops, half_ops = sum(slices.ops) + sum(slices.errors), sum(slices.half_ops)
    half_ns = sum(slices.half_ns)
    first, second = (half_ops, half_ns), (ops - half_ops, sum(slices.elapsed_ns) - half_ns)
    if min(*first, *second) <= 0:
        return None
    return math.log(second[0] / second[1]) - math.log(first[0] / first[1])
