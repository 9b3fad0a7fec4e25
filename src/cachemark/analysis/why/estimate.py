"""A figure of one operation with its error, from a few repetitions. Pure."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics.interval import mean_half_width
from cachemark.model.counts import Counts

# Many figures of many clients are compared: chance alone should make none differ.
CONFIDENCE = 0.99


class CountEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean, and half of its 99 % interval over the repetitions."""

    value: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether it is more than its error, above 0."""
        return self.value > self.error


def estimate_of(repetitions: Sequence[Counts], figure: str) -> CountEstimate | None:
    """A figure of a client; None if it was not counted."""
    return mean_of(_values(repetitions, figure))


def difference_of(
    one: Sequence[Counts], other: Sequence[Counts], figure: str
) -> CountEstimate | None:
    """The figure of `one` less that of `other`; None if either was not counted.

    Repetitions are compared in pairs: a busy minute of the machine disturbs both clients.
    """
    pairs = zip(_values(one, figure), _values(other, figure), strict=False)
    return mean_of([mine - others for mine, others in pairs])


def mean_of(values: Sequence[float]) -> CountEstimate | None:
    """The mean of some repetitions with its error; None without values."""
    if not values:
        return None
    # Counts that are the same each time have no error.
    error = 0.0 if len(set(values)) == 1 else mean_half_width(values, CONFIDENCE) or 0.0
    return CountEstimate(value=sum(values) / len(values), error=error)


def _values(repetitions: Sequence[Counts], figure: str) -> list[float]:
    found = [getattr(each, figure) for each in repetitions]
    return [value for value in found if value is not None]
