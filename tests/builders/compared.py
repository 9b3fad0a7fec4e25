"""Comparisons of made-up figures and trials, by the functions that reports use."""

from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.rounds.comparing import compare_chosen, look
from cachemark.analysis.rounds.estimate import difference, mean_of_logs
from cachemark.analysis.rounds.looks import MIN_BLOCKS, StopRule
from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.statistics import RESOLUTION, Comparison, Interval
from cachemark.model.outcome import Outcome

BY_BLOCK = StopRule(margin=0.05, looks=(), least=MIN_BLOCKS, unit="block")


def paired_ratio(
    first: Sequence[float], second: Sequence[float], resolution: float = RESOLUTION
) -> Interval:
    """The ratio of paired values, with its interval of 95 %."""
    logs = np.log(np.asarray(first, dtype=float)) - np.log(np.asarray(second, dtype=float))
    return mean_of_logs(logs.tolist(), resolution).ratio(0.95)


def unpaired_ratio(
    first: Sequence[float], second: Sequence[float], resolution: float = RESOLUTION
) -> Interval:
    """The ratio of the means of two independent groups, with Welch's interval of 95 %."""
    one, two = (
        mean_of_logs(np.log(np.asarray(side)).tolist(), resolution) for side in (first, second)
    )
    return difference(one, two).ratio(0.95)


def compared(
    outcomes: Sequence[Outcome],
    first: str,
    second: str,
    margin: float = 0.05,
    figure: str = "rate",
) -> Comparison:
    """Two clients of some trials, first / second, tested by themselves."""
    rule = msgspec.structs.replace(BY_BLOCK, margin=margin)
    looked = look(read_sittings(outcomes, [figure]), rule, final=True)
    cell = outcomes[0].trial.cell
    pair = tuple(msgspec.structs.replace(cell, client=name) for name in (first, second))
    return compare_chosen(looked, (pair[0], pair[1]), figure)
