"""A figure of one operation with its error, from a few repetitions. Pure."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics.interval import mean_half_width
from cachemark.model.counts import Counts

CONFIDENCE = 0.99
# Fewer values have no error.
_LEAST = 3


class CountEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean, and half of its 99 % interval over the repetitions."""

    value: float
    error: float


def all_confidence(tests: int) -> float:
    """The confidence of each of some tests, if all of them together are to have 99 %."""
    return 1 - (1 - CONFIDENCE) / max(1, tests)


def estimate_of(repetitions: Sequence[Counts], figure: str) -> CountEstimate | None:
    """A figure of a client; None if it was not counted."""
    return mean_of([getattr(each, figure) for each in repetitions])


def difference_of(
    one: Sequence[Counts], other: Sequence[Counts], figure: str, confidence: float = CONFIDENCE
) -> CountEstimate | None:
    """The figure of `one` less that of `other`; None if either was not counted."""
    return mean_of(differences_of(one, other, figure), confidence)


def differences_of(
    one: Sequence[Counts], other: Sequence[Counts], figure: str
) -> list[float | None]:
    """The figure of `one` less that of `other` in each repetition; None: not counted.

    Repetitions are compared in pairs: a busy minute of the machine disturbs both clients.
    """
    pairs = [
        (getattr(mine, figure), getattr(others, figure))
        for mine, others in zip(one, other, strict=False)
    ]
    return [None if None in pair else pair[0] - pair[1] for pair in pairs]


def mean_of(values: Sequence[float | None], confidence: float = CONFIDENCE) -> CountEstimate | None:
    """The mean with its error; None if too few repetitions have a value."""
    counted = [value for value in values if value is not None]
    if not counted or len(counted) < min(_LEAST, len(values)):
        return None
    # Counts that are the same each time have no error.
    error = 0.0 if len(set(counted)) == 1 else mean_half_width(counted, confidence) or 0.0
    return CountEstimate(value=sum(counted) / len(counted), error=error)
