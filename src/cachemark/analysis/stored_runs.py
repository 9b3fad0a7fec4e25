"""The ratio of a figure of stored runs to that of other runs: each run is one value.

The trials of a run are not independent of each other: they share the run's state (memory layout,
neighbours, temperature). And runs are not exchangeable: a machine is faster on some days than on
others. So two sets of runs are compared only if they were played in turns. Then neighbours are
pairs: what the machine is like at the time cancels in the difference of their logarithms.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.ranking import cell_figure
from cachemark.model.outcome import Cell, Outcome

# With fewer runs on a side, two sets of runs get no answer.
MIN_RUNS = 4
NOT_IN_TURNS = "these runs were not played in turns"
_FEW = f"an answer needs {MIN_RUNS} runs on each side"


class RunValue(msgspec.Struct, frozen=True, kw_only=True):
    """A run's figure; None if it lacks it. `began` is when the run began, as ISO 8601 in UTC."""

    began: str
    value: float | None


class RunsEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """ln(first / second) of two sets of runs; `pairs` are neighbours, 0 if there are none.

    `why`: the reason if there is no estimate, or no answer. `lost`: only the second has the figure.
    """

    estimate: LogEstimate | None = None
    pairs: int = 0
    lost: bool = False
    why: str = ""


def run_value(began: str, outcomes: Sequence[Outcome], cell: Cell, name: str) -> RunValue:
    """A figure of a cell in one run."""
    of = cell_figure(outcomes, cell, name)
    return RunValue(began=began, value=of.value if of else None)


def compare_run_values(first: Sequence[RunValue], second: Sequence[RunValue]) -> RunsEstimate:
    """ln of the ratio of two sets of runs.

    Runs in turns have an interval over pairs of neighbours. Others have the ratio of their
    geometric means, without an interval: a change of the machine looks like a change of what
    was measured. A run without a neighbour, at either end, is left out of the interval.
    """
    lacks = [not side or any(run.value is None for run in side) for side in (first, second)]
    if any(lacks):
        who = "either" if all(lacks) else "the other" if lacks[0] else "the baseline"
        return RunsEstimate(why=f"some trials of {who} lack it", lost=lacks == [True, False])
    pairs, between = _neighbours(first, second)
    if len(pairs) >= MIN_RUNS:
        estimate = mean_of_logs(pairs)
        if between:
            value = (estimate.value + sum(between) / len(between)) / 2
            estimate = msgspec.structs.replace(estimate, value=value)
        return RunsEstimate(estimate=estimate, pairs=len(pairs))
    means = [sum(map(_log, side)) / len(side) for side in (first, second)]
    estimate = LogEstimate(value=means[0] - means[1])
    few = min(len(first), len(second)) < MIN_RUNS
    return RunsEstimate(estimate=estimate, why=_FEW if few else NOT_IN_TURNS)


def _neighbours(
    first: Sequence[RunValue], second: Sequence[RunValue]
) -> tuple[list[float], list[float]]:
    """ln(first / second) of neighbours in time; none if the two sides did not take turns.

    Side by side, as in A B A B or A B B A. At most one run may have no partner, at an end. In A B A
    B a trend of the machine is in all pairs. It has the other sign in the pairs of each run with
    the one after its partner, which are the second list.
    """
    runs = [(run.began, True, _log(run)) for run in first]
    runs += [(run.began, False, _log(run)) for run in second]
    runs.sort()
    if any(one[0] == other[0] for one, other in pairwise(runs)):
        return [], []
    pairs, between = _ratios(runs), _ratios(runs[1:])
    return (between, []) if not pairs and len(runs) % 2 else (pairs, between)


def _ratios(runs: Sequence[tuple[str, bool, float]]) -> list[float]:
    """ln(first / second) of each pair of runs; none if one of them is of one side."""
    pairs = list(zip(runs[::2], runs[1::2], strict=False))
    if any(one[1] == other[1] for one, other in pairs):
        return []
    return [one[2] - other[2] if one[1] else other[2] - one[2] for one, other in pairs]


def _log(run: RunValue) -> float:
    return math.log(run.value or math.nan)
