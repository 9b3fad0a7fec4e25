"""An estimate on logarithms: estimates add up, and exp() turns them into ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.statistics import Interval, rounding_deviation, t_interval

# The deviation of a ratio of two figures is at least that of rounding both of them, so that equal
# values do not prove anything.
_MIN_DEVIATION = math.sqrt(2) * rounding_deviation()


class LogEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of ln(ratio) with its standard error; an error of None is not known."""

    value: float
    error: float | None
    degrees_of_freedom: float

    def ratio(self, confidence: float) -> Interval:
        """The ratio with Student's t interval, and the p value of a ratio of 1."""
        if self.error is None or self.degrees_of_freedom <= 0:
            return Interval(value=math.exp(self.value))
        return t_interval(self.value, self.error, self.degrees_of_freedom, confidence)

    def negated(self) -> LogEstimate:
        """The estimate of the ratio the other way round."""
        return msgspec.structs.replace(self, value=-self.value)


def mean_of_logs(logs: Sequence[float]) -> LogEstimate:
    """The mean of the log ratios of several sittings, with the error from their spread."""
    values = np.asarray(logs, dtype=float)
    count = len(values)
    if count < 2:
        return LogEstimate(value=float(values.mean()), error=None, degrees_of_freedom=0)
    deviation = max(float(values.std(ddof=1)), _MIN_DEVIATION)
    return LogEstimate(
        value=float(values.mean()),
        error=deviation / math.sqrt(count),
        degrees_of_freedom=count - 1,
    )


def difference(first: LogEstimate, second: LogEstimate) -> LogEstimate:
    """The difference of two independent estimates: variances add, degrees by Welch–Satterthwaite.

    Welch, Biometrika 34 (1947).
    """
    value = first.value - second.value
    if first.error is None or second.error is None:
        return LogEstimate(value=value, error=None, degrees_of_freedom=0)
    one, two = first.error**2, second.error**2
    below = one**2 / first.degrees_of_freedom + two**2 / second.degrees_of_freedom
    degrees = (
        (one + two) ** 2 / below
        if below
        else min(first.degrees_of_freedom, second.degrees_of_freedom)
    )
    return LogEstimate(value=value, error=math.sqrt(one + two), degrees_of_freedom=degrees)


def pooled_within(estimates: Sequence[LogEstimate]) -> LogEstimate:
    """The mean of estimates *within* a few sittings, with the mean of their own errors.

    It does not include the spread between sittings.
    """
    count = len(estimates)
    value = sum(one.value for one in estimates) / count
    errors = [one.error for one in estimates if one.error is not None]
    if len(errors) < count:
        return LogEstimate(value=value, error=None, degrees_of_freedom=0)
    return LogEstimate(
        value=value,
        error=math.sqrt(sum(error**2 for error in errors)) / count,
        degrees_of_freedom=sum(one.degrees_of_freedom for one in estimates),
    )
