"""Whether a percentile is within a limit, by how many times of a sample are above it.

Of n independent times, the number above the p99.9 has a binomial distribution with a mean of
n/1000. So a sample shows a percentile only with some error, and a small one shows nothing.
"""

from typing import Literal

from cachemark.analysis.statistics.interval import CONFIDENCE
from cachemark.analysis.statistics.quantiles import beta_quantile

LimitAnswer = Literal["within", "above", "unknown"]


def percentile_against_limit(count: int, above: int, percent: float) -> LimitAnswer:
    """Whether a percentile is within a limit that `above` of `count` times exceed.

    `within` or `above` if the 95 % interval of the part that exceeds the limit shows it.
    """
    allowed = 1 - percent / 100
    low, high = proportion_interval(above, count)
    if high <= allowed:
        return "within"
    return "above" if low > allowed else "unknown"


def proportion_interval(successes: int, count: int) -> tuple[float, float]:
    """The exact 95 % interval of a proportion: Clopper and Pearson, Biometrika 26 (1934)."""
    tail = (1 - CONFIDENCE) / 2
    failures = count - successes
    low = beta_quantile(tail, successes, failures + 1) if successes else 0.0
    high = beta_quantile(1 - tail, successes + 1, failures) if failures else 1.0
    return low, high
