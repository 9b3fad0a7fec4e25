"""Where a series changes its level, how much it drifts, and whether it is level at all.

Three known methods over a few hundred points, each a few lines of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]

# Above this a series is not level at the 1 % level: Kwiatkowski et al. 1992, table 1, η_μ.
KPSS_CRITICAL = 0.739
# So many neighbours, itself included, decide a point before levels are sought.
_SMOOTHED = 5
# A series is never taken to be quieter than this: a histogram's buckets are as wide.
_QUIETEST = 0.001


def noise(values: Series) -> float:
    """The standard deviation of a series round its level, whatever steps the level takes.

    From the median of the absolute differences of neighbours, which a few steps do not move:
    median |N(0, σ√2)| = 0.6745 · √2 · σ.
    """
    differences = np.abs(np.diff(values))
    if not len(differences):
        return _QUIETEST
    return max(_QUIETEST, float(np.median(differences)) / (0.6745 * 2**0.5))


def smoothed(values: Series) -> Series:
    """Each point the median of itself and its neighbours: single outliers go, steps stay sharp."""
    reach = _SMOOTHED // 2
    padded = np.pad(values, reach, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _SMOOTHED)
    return np.median(windows, axis=1)


def change_points(values: Series, penalty: float, least: int) -> list[int]:
    """Where new levels begin: the cut with the least sum of squares + penalty for each level.

    PELT, which is exact: Killick, Fearnhead and Eckley, Journal of the American Statistical
    Association 107 (2012). `least` is how many points a level has at least.
    """
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])

    def cost(begins: NDArray[np.int64], end: int) -> Series:
        """The sum of squares round the mean from each of `begins` to `end`."""
        return squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / (end - begins)

    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, dtype=np.int64)
    candidates = np.array([0])
    dropped_at = np.full(count + 1, count + 1)
    for end in range(least, count + 1):
        fits = best[candidates] + cost(candidates, end)
        chosen = int(np.argmin(fits))
        best[end], before[end] = fits[chosen] + penalty, candidates[chosen]
        # To begin a level here is better than to have begun it there, as soon as one can end.
        worse = candidates[fits > best[end]]
        dropped_at[worse] = np.minimum(dropped_at[worse], end + least)
        candidates = candidates[dropped_at[candidates] > end + 1]
        if end + 1 >= 2 * least:
            candidates = np.append(candidates, end + 1 - least)
    points: list[int] = []
    at = int(before[count])
    while at > 0:
        points.append(at)
        at = int(before[at])
    return points[::-1]


def levels(values: Series, least: int, apart: float) -> list[tuple[int, int]]:
    """The parts, begin and end, that are levels of their own.

    PELT finds them on the smoothed series, with the penalty 4 σ² ln n. Neighbours whose medians
    differ by less than `apart`, or by less than chance would have it, are then one, the most alike
    first.
    """
    penalty = 4 * noise(values) ** 2 * float(np.log(len(values)))
    cuts = [0, *change_points(smoothed(values), penalty, least), len(values)]
    while len(cuts) > 2:
        parts = [values[begin:end] for begin, end in pairwise(cuts)]
        steps = [_step(one, other, apart) for one, other in pairwise(parts)]
        closest = int(np.argmin(steps))
        if steps[closest] > 1:
            break
        del cuts[closest + 1]
    return list(pairwise(cuts))


def _step(one: Series, other: Series, apart: float) -> float:
    """How far two parts' medians are apart, in units of what it takes to be two levels.

    That is `apart`, or four standard errors: of medians, 1.25 σ / √n, where n points that resemble
    their neighbours (ρ) are as good as n (1 − ρ) / (1 + ρ).
    """
    residuals = [part - np.median(part) for part in (one, other)]
    together = np.concatenate(residuals)
    deviation = float(np.median(np.abs(together))) / 0.6745
    clipped = np.clip(together, -3 * deviation, 3 * deviation)
    power = float(clipped @ clipped)
    alike = float(clipped[1:] @ clipped[:-1]) / power if power else 0.0
    alike = min(0.95, max(0.0, alike))
    fewer = (1 + alike) / (1 - alike)
    error = 1.25 * deviation * float(np.sqrt(fewer * (1 / len(one) + 1 / len(other))))
    return abs(float(np.median(one) - np.median(other))) / max(apart, 4 * error)


def trend(values: Series) -> float:
    """The change from the first to the last point along the line of Theil and Sen.

    The median of the slopes of all pairs: Sen, Journal of the American Statistical Association 63
    (1968). Fewer than 30 % of points that are far off do not move it.
    """
    first, last = np.triu_indices(len(values), k=1)
    slopes = (values[last] - values[first]) / (last - first)
    return float(np.median(slopes)) * (len(values) - 1)


def kpss(values: Sequence[float] | Series) -> float:
    """The statistic η_μ of the test whose null hypothesis is that a series is level.

    Kwiatkowski, Phillips, Schmidt and Shin, Journal of Econometrics 54 (1992): Σ S_t² / (n² s²),
    S_t the sums of the residuals and s² their long-run variance, with Bartlett weights over
    4 (n/100)^¼ lags. A unit-root test would not do: it finds a doubling at half time stationary.
    """
    residuals = np.asarray(values, dtype=float) - float(np.mean(values))
    count = len(residuals)
    lags = int(4 * (count / 100) ** 0.25)
    variance = float(residuals @ residuals)
    for lag in range(1, lags + 1):
        weight = 1 - lag / (lags + 1)
        variance += 2 * weight * float(residuals[lag:] @ residuals[:-lag])
    sums = np.cumsum(residuals)
    return float(sums @ sums) / (count * variance) if variance > 0 else 0.0
