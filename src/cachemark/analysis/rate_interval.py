"""The interval of the rate up to which an objective is met, from all plays of searches. Pure.

A trial at a rate misses the objective with a probability that grows with the rate: a logistic
curve of its logarithm, with its middle at the rate that is sought. A part of the trials misses at
any rate, as something disturbed them (Wichmann & Hill, Perception & Psychophysics 63, 2001). The
interval has all middles whose likelihood is near enough to that of the best curve.
"""

from collections.abc import Sequence

import numpy as np

from cachemark.analysis.rate_search import Search
from cachemark.analysis.statistics import CONFIDENCE, Interval, t_quantile

# Widths of the curve (of logarithms), and parts of trials that miss at any rate.
_WIDTHS = (0.02, 0.04, 0.08, 0.16)
_SPOILED = (0.0, 0.05, 0.1, 0.2)
# Middles in steps of about a quarter of a percent, beyond the rates that were played.
_MIDDLES = 1600
_BEYOND = 1.5
_LEAST_PLAYS = 4
_LEAST = 1e-6


def rate_interval(searches: Sequence[Search], rate: float) -> Interval | None:
    """The interval around a rate that searches of one cell found; None if an end is not known.

    So it is if all plays met the objective, or all missed it.
    """
    plays = [play for search in searches for play in search.plays if not play.spoiled_by]
    if len(plays) < _LEAST_PLAYS or rate <= 0:
        return None
    logs = np.log([play.rate for play in plays])
    missed = np.array([bool(play.misses_by) for play in plays])
    reach = np.log(_BEYOND)
    middles = np.linspace(logs.min() - reach, logs.max() + reach, _MIDDLES)
    likelihood = _likelihood(logs, missed, middles)
    # As with Student's t, few plays have a wider limit than many. Plays of one search are alike
    # where those of several are not, so these count by searches.
    degrees = len(searches) if len(searches) > 1 else len(plays) - 2
    fall = t_quantile((1 + CONFIDENCE) / 2, degrees) ** 2 / 2
    likely = middles[likelihood >= likelihood.max() - fall]
    if likely[0] == middles[0] or likely[-1] == middles[-1]:
        return None
    low, high = np.exp(likely[0]), np.exp(likely[-1])
    return Interval(value=rate, low=min(float(low), rate), high=max(float(high), rate))


def _likelihood(logs: np.ndarray, missed: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """ln of the greatest likelihood of each middle, over all widths and parts of spoiled trials."""
    greatest = np.full(len(middles), -np.inf)
    for width in _WIDTHS:
        above = 1 / (1 + np.exp(-np.clip((logs - middles[:, None]) / width, -50, 50)))
        for spoiled in _SPOILED:
            misses = np.clip(spoiled + (1 - spoiled) * above, _LEAST, 1 - _LEAST)
            each = np.where(missed, np.log(misses), np.log(1 - misses))
            greatest = np.maximum(greatest, each.sum(axis=1))
    return greatest
