"""An estimate on logarithms: estimates add up, and exp() turns them into ratios."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.statistics import (
    ALPHA,
    CONFIDENCE,
    RESOLUTION,
    Interval,
    Reach,
    rounding_deviation,
    t_interval,
    t_quantile,
    two_sided_p,
)

# One value makes most of a spread if it has more than this part of the variance.
_MOST = 0.5
# Of three values or fewer, one always does.
_LEAST_MARKED = 4

# A float holds no larger number; two sittings can have an interval without a useful end.
_LARGEST_LOG = 700.0


class LogEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of ln(ratio) with its standard error; an error of None is not known.

    `count` is how many values it is the mean of. `logs` are these values, if they are single
    ratios. `reach`: how far its ends are, if not in proportion to the error.
    """

    value: float
    error: float | None = None
    degrees_of_freedom: float = 0
    count: int = 0
    logs: tuple[float, ...] = ()
    reach: Reach | None = None

    def ratio(self, confidence: float) -> Interval:
        """The ratio with Student's t interval, and the p value of a ratio of 1."""
        if self.error is None or self.degrees_of_freedom <= 0:
            return Interval(value=math.exp(self.value))
        if self.reach is None:
            return t_interval(self.value, self.error, self.degrees_of_freedom, confidence)
        below, above = self.reach.ends(t_quantile((1 + confidence) / 2, self.degrees_of_freedom))
        return Interval(
            value=math.exp(self.value),
            low=math.exp(self.value - below),
            high=math.exp(min(self.value + above, _LARGEST_LOG)),
            p=two_sided_p(self.reach.radius(-self.value), self.degrees_of_freedom),
        )

    def p_apart(self, margin: float) -> float | None:
        """The p value of a ratio beyond the margin; None without an error.

        Twice the larger one of two one-sided tests. So it is at most 1 − confidence where the
        interval of that confidence is within the margin.
        """
        if self.error is None or self.degrees_of_freedom <= 0:
            return None
        room = math.log1p(margin) - abs(self.value)
        if room <= 0:
            return 1.0
        if self.reach is not None:
            ends = (-math.log1p(margin) - self.value, math.log1p(margin) - self.value)
            return two_sided_p(min(map(self.reach.radius, ends)), self.degrees_of_freedom)
        return two_sided_p(room / self.error, self.degrees_of_freedom) if self.error > 0 else 0.0

    @property
    def spread(self) -> tuple[float, float] | None:
        """The range of the single ratios; None for fewer than two."""
        if len(self.logs) < 2:
            return None
        return math.exp(min(self.logs)), math.exp(max(self.logs))

    @property
    def one_tells_most(self) -> bool:
        """Whether one of at least four ratios makes more than half of the variance.

        Such an interval is no good guide: a rare bad sitting is either in it or not. Of a few
        ordinary ratios one often does so by chance. So it must also be an outlier by Grubbs' test
        (Annals of Mathematical Statistics 21, 1950), which marks 5 % of ordinary ones.
        """
        count = len(self.logs)
        if count < _LEAST_MARKED or float(np.std(self.logs)) <= 2 * rounding_deviation():
            return False
        squares = (np.asarray(self.logs) - np.mean(self.logs)) ** 2
        t_square = t_quantile(1 - ALPHA / (2 * count), count - 2) ** 2
        by_chance = (count - 1) / count * t_square / (count - 2 + t_square)
        return bool(squares.max() > max(_MOST, by_chance) * squares.sum())


def mean_of_logs(logs: Sequence[float], resolution: float = RESOLUTION) -> LogEstimate:
    """The mean of the log ratios of several sittings, with the error from their spread.

    `resolution` is the step of both figures, relative to them. Figures that fall on the same steps
    again and again are all wrong in the same direction. So the part of the rounding's deviation
    that the spread lacks does not shrink with the number of sittings.
    """
    values = np.asarray(logs, dtype=float)
    count = len(values)
    known = tuple(map(float, values))
    if count < 2:
        return LogEstimate(value=float(values.mean()), count=count, logs=known)
    return LogEstimate(
        value=float(values.mean()),
        error=error_with_steps(float(values.var(ddof=1)), count, resolution),
        degrees_of_freedom=count - 1,
        count=count,
        logs=known,
    )


def error_with_steps(variance: float, count: int, resolution: float) -> float:
    """The standard error of a mean of ratios; `resolution`: the relative steps of both figures."""
    rounding = 2 * rounding_deviation(resolution) ** 2
    return math.sqrt(variance / count + max(0.0, rounding - variance))


def of_reach(value: float, reach: Reach | None, count: int, resolution: float) -> LogEstimate:
    """An estimate with the ends of a reach, widened where rounding deviates more than they do."""
    if reach is None:
        return LogEstimate(value=value, count=count)
    error = _error_of(reach, count - 1)
    lacking = error_with_steps(count * error**2, count, resolution) ** 2 - error**2
    whole = reach.with_error(math.sqrt(max(0.0, lacking)))
    return LogEstimate(
        value=value,
        error=_error_of(whole, count - 1),
        degrees_of_freedom=count - 1,
        count=count,
        reach=whole,
    )


def _error_of(reach: Reach, degrees_of_freedom: float) -> float:
    """The standard error whose 95 % interval is as wide."""
    radius = t_quantile((1 + CONFIDENCE) / 2, degrees_of_freedom)
    return sum(reach.ends(radius)) / 2 / radius


def difference(first: LogEstimate, second: LogEstimate) -> LogEstimate:
    """The difference of two independent estimates: variances add, degrees by Welch–Satterthwaite.

    Welch, Biometrika 34 (1947).
    """
    value, count = first.value - second.value, min(first.count, second.count)
    if first.error is None or second.error is None:
        return LogEstimate(value=value, count=count)
    one, two = first.error**2, second.error**2
    below = one**2 / first.degrees_of_freedom + two**2 / second.degrees_of_freedom
    degrees = (
        (one + two) ** 2 / below
        if below
        else min(first.degrees_of_freedom, second.degrees_of_freedom)
    )
    reach = first.reach.minus(second.reach) if first.reach and second.reach else None
    return LogEstimate(
        value=value,
        error=math.sqrt(one + two),
        degrees_of_freedom=degrees,
        count=count,
        reach=reach,
    )


def pooled_within(estimates: Sequence[LogEstimate]) -> LogEstimate:
    """The mean of estimates *within* a few sittings, with the mean of their own errors.

    It does not include the spread between sittings.
    """
    count = len(estimates)
    value = sum(one.value for one in estimates) / count
    errors = [one.error for one in estimates if one.error is not None]
    if len(errors) < count:
        return LogEstimate(value=value, count=count)
    return LogEstimate(
        value=value,
        error=math.sqrt(sum(error**2 for error in errors)) / count,
        degrees_of_freedom=sum(one.degrees_of_freedom for one in estimates),
        count=count,
    )
