"""Change points, trend and stationarity of a series of a few hundred points.

These are three published methods, each a few lines of numpy.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

SeriesValues = NDArray[np.float64]

# Above this, the test rejects at the 1 % level: Kwiatkowski et al. 1992, table 1, η_μ.
KPSS_CRITICAL = 0.739
# The width of the running median, in points.
_SMOOTHING_POINTS = 5
# The noise of a series is never estimated below this, the width of a histogram's buckets.
_MIN_NOISE = 0.001


def noise(values: SeriesValues) -> float:
    """The standard deviation of a series around its level, even if the level has steps.

    It is computed from the median of the absolute differences of neighbours, which a few steps do
    not change: median |N(0, σ√2)| = 0.6745 · √2 · σ.
    """
    differences = np.abs(np.diff(values))
    if not len(differences):
        return _MIN_NOISE
    return max(_MIN_NOISE, float(np.median(differences)) / (0.6745 * 2**0.5))


def smooth(values: SeriesValues) -> SeriesValues:
    """The running median: it removes single outliers and keeps steps sharp."""
    reach = _SMOOTHING_POINTS // 2
    padded = np.pad(values, reach, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _SMOOTHING_POINTS)
    return np.median(windows, axis=1)


def change_points(values: SeriesValues, penalty: float, min_points: int) -> list[int]:
    """Where new plateaus begin: the cut with the least sum of squares + penalty per plateau.

    PELT finds it exactly: Killick, Fearnhead and Eckley, Journal of the American Statistical
    Association 107 (2012). `min_points` is the minimum number of points of a plateau.
    """
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])

    def cost(begins: NDArray[np.int64], end: int) -> SeriesValues:
        """The sum of squares around the mean, from each of `begins` to `end`."""
        return squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / (end - begins)

    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, dtype=np.int64)
    candidates = np.array([0])
    dropped_at = np.full(count + 1, count + 1)
    for end in range(min_points, count + 1):
        fits = best[candidates] + cost(candidates, end)
        chosen = int(np.argmin(fits))
        best[end], before[end] = fits[chosen] + penalty, candidates[chosen]
        # A plateau that begins here is better than one that began there, once it is long enough.
        worse = candidates[fits > best[end]]
        dropped_at[worse] = np.minimum(dropped_at[worse], end + min_points)
        candidates = candidates[dropped_at[candidates] > end + 1]
        if end + 1 >= 2 * min_points:
            candidates = np.append(candidates, end + 1 - min_points)
    points: list[int] = []
    at = int(before[count])
    while at > 0:
        points.append(at)
        at = int(before[at])
    return points[::-1]


def plateaus(values: SeriesValues, min_points: int, min_difference: float) -> list[tuple[int, int]]:
    """The plateaus of a series, each as (begin, end).

    PELT cuts the smoothed series, with the penalty 4 σ² ln n. Then neighbours are merged, the most
    similar first, if their medians differ by less than `min_difference` or than chance explains.
    """
    penalty = 4 * noise(values) ** 2 * float(np.log(len(values)))
    cuts = [0, *change_points(smooth(values), penalty, min_points), len(values)]
    while len(cuts) > 2:
        parts = [values[begin:end] for begin, end in pairwise(cuts)]
        steps = [_relative_step(one, other, min_difference) for one, other in pairwise(parts)]
        closest = int(np.argmin(steps))
        if steps[closest] > 1:
            break
        del cuts[closest + 1]
    return list(pairwise(cuts))


def _relative_step(one: SeriesValues, other: SeriesValues, min_difference: float) -> float:
    """The difference of two parts' medians, in units of the least difference of two plateaus.

    That difference is `min_difference`, or four standard errors if these are larger. The standard
    error of a median is 1.25 σ / √n; with autocorrelation ρ, n counts as n (1 − ρ) / (1 + ρ).
    """
    residuals = [part - np.median(part) for part in (one, other)]
    residual_series = np.concatenate(residuals)
    deviation = float(np.median(np.abs(residual_series))) / 0.6745
    clipped = np.clip(residual_series, -3 * deviation, 3 * deviation)
    power = float(clipped @ clipped)
    autocorrelation = float(clipped[1:] @ clipped[:-1]) / power if power else 0.0
    autocorrelation = min(0.95, max(0.0, autocorrelation))
    inflation = (1 + autocorrelation) / (1 - autocorrelation)
    error = 1.25 * deviation * float(np.sqrt(inflation * (1 / len(one) + 1 / len(other))))
    return abs(float(np.median(one) - np.median(other))) / max(min_difference, 4 * error)


def trend(values: SeriesValues) -> float:
    """The change from the first to the last point along the Theil–Sen line.

    Its slope is the median of the slopes of all pairs: Sen, Journal of the American Statistical
    Association 63 (1968). Outliers do not change it much if they are fewer than 29 % of the points.
    """
    first, last = np.triu_indices(len(values), k=1)
    slopes = (values[last] - values[first]) / (last - first)
    return float(np.median(slopes)) * (len(values) - 1)


def kpss(values: Sequence[float] | SeriesValues) -> float:
    """The KPSS statistic η_μ; the null hypothesis is that the series is level stationary.

    Kwiatkowski, Phillips, Schmidt and Shin, Journal of Econometrics 54 (1992): Σ S_t² / (n² s²),
    S_t the sums of the residuals and s² their long-run variance, with Bartlett weights over
    4 (n/100)^¼ lags. A unit-root test would not work: it calls a doubling at half time stationary.
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
