"""Intervals over trials: Student's t on logarithms.

A trial, never a request, is the sample: requests of one trial are correlated, and an interval
over them is far too narrow. Rates and times are positive and skewed to the right; on logarithms
the t interval of a few trials keeps its coverage (0.945 at n = 5 for lognormal samples, where the
bootstrap of the mean has 0.835).
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from cachemark.analysis.statistics.quantiles import (
    beta_quantile,
    binomial_cdf,
    t_quantile,
    two_sided_p,
)

CONFIDENCE = 0.95
# No figure is more exact than a bucket of a histogram, relative to its value.
RESOLUTION = 1 / 1024
# With fewer trials, the t interval of an absolute figure is too narrow: if one trial in ten runs at
# half speed, it contains the true mean in 40 % of runs of 5 trials, 65 % of 10, 90 % of 30, 93 % of
# 60. Ratios keep their coverage, because pairs remove what a block's trials have in common.
MIN_INTERVAL_TRIALS = 60


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate with its 95 % interval; a single trial has no interval.

    If `bounds` is `range`, `low` and `high` are the least and the greatest trial instead.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    bounds: Literal["interval", "range"] = "interval"

    def times(self, factor: float) -> "Interval":
        """The same in another unit, or at another level."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return msgspec.structs.replace(self, value=self.value * factor, low=low, high=high)

    def beyond(self, factor: float) -> "Interval":
        """The same ratio, without the part between 1 / `factor` and `factor`."""
        low, high = self.low, self.high
        if low is not None and self.value >= factor:
            low = max(low, factor)
        if high is not None and self.value <= 1 / factor:
            high = min(high, 1 / factor)
        return msgspec.structs.replace(self, low=low, high=high)


def absolute_figure(values: Sequence[float]) -> Interval:
    """The geometric mean of a cell's trials. Values must be above 0.

    With fewer than MIN_INTERVAL_TRIALS trials it has their range, otherwise the t interval.
    """
    mean = geometric_mean(values)
    if not 2 <= len(values) < MIN_INTERVAL_TRIALS:
        return mean
    return Interval(value=mean.value, low=min(values), high=max(values), bounds="range")


def geometric_mean(values: Sequence[float]) -> Interval:
    """Geometric mean and t interval on logs: exp(m ± t(n−1) · s / √n). Values must be above 0."""
    logs = np.log(np.asarray(values, dtype=float))
    count = len(logs)
    if count < 2:
        return Interval(value=float(np.exp(logs.mean())))
    return t_interval(float(logs.mean()), float(logs.std(ddof=1)) / count**0.5, count - 1)


def rounding_deviation(resolution: float = RESOLUTION) -> float:
    """The standard deviation of the error of rounding: uniform over one step."""
    return resolution / 12**0.5


def mean_half_width(values: Sequence[float], confidence: float) -> float | None:
    """Half of Student's t interval of an arithmetic mean; None for fewer than three values.

    For other programs' formats, which are defined so; a report's own intervals are on logarithms.
    """
    count = len(values)
    if count < 3:
        return None
    half_width = t_quantile((1 + confidence) / 2, count - 1)
    return half_width * float(np.std(np.asarray(values, dtype=float), ddof=1)) / count**0.5


def t_interval(
    mean: float, error: float, degrees_of_freedom: float, confidence: float = CONFIDENCE
) -> Interval:
    """exp(mean ± t · error), and the p value of mean = 0."""
    half_width = t_quantile((1 + confidence) / 2, degrees_of_freedom) * error
    p = two_sided_p(mean / error, degrees_of_freedom) if error > 0 else float(mean == 0)
    value, low, high = (float(np.exp(at)) for at in (mean, mean - half_width, mean + half_width))
    return Interval(value=value, low=low, high=high, p=p)


def median_interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float, float] | None:
    """The median, and two order statistics between which the true median lies; None without values.

    The number of values below the true median is binomial(n, 1/2). So the k-th smallest and the
    k-th largest value enclose it with probability 1 − 2 · P(B < k). k is the largest number that
    keeps the confidence; if there is none (n < 6 at 95 %), the interval is infinite.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    count = len(ordered)
    if not count:
        return None
    # P(B < k) = P(B ≤ k − 1) for k = 1, 2, …
    below = binomial_cdf(np.arange(count // 2), count, 0.5)
    ranks = int(np.searchsorted(below, (1 - confidence) / 2, side="right"))
    middle = float(np.median(ordered))
    if ranks == 0:
        return middle, -float("inf"), float("inf")
    return middle, float(ordered[ranks - 1]), float(ordered[-ranks])


LimitAnswer = Literal["within", "above", "unknown"]


def percentile_against_limit(count: int, above: int, percent: float) -> LimitAnswer:
    """Whether a percentile is within a limit that `above` of `count` times exceed.

    Of n independent times, the number above the p99.9 has a binomial distribution with a mean of
    n/1000. `within` or `above` if the 95 % interval of the part that exceeds the limit shows it.
    """
    allowed = 1 - percent / 100
    low, high = proportion_interval(above, count)
    if high <= allowed:
        return "within"
    return "above" if low > allowed else "unknown"


def proportion_interval(
    successes: int, count: int, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The exact interval of a proportion, 95 %: Clopper and Pearson, Biometrika 26 (1934)."""
    tail = (1 - confidence) / 2
    failures = count - successes
    low = beta_quantile(tail, successes, failures + 1) if successes else 0.0
    high = beta_quantile(1 - tail, successes + 1, failures) if failures else 1.0
    return low, high
