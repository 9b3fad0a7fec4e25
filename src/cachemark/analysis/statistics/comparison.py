"""The comparison of two cells by one figure: the ratio, how sure it is, and what it answers.

The only value of its kind: made where a run, two runs or two builds are compared, and handed as it
is to every report, gate and picture.
"""

import math
from typing import Literal

import msgspec

from cachemark.analysis.statistics.decision import OPPOSITE, Answer
from cachemark.analysis.statistics.interval import CONFIDENCE, Interval
from cachemark.model.outcome import Cell

# The unit over which a ratio is a mean.
Unit = Literal["sitting", "block", "run", "pair of runs"]
# The base of an interval: several units, or parts within a few.
Scope = Literal["over", "within"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio first / second of a figure, and what it answers about the first.

    - `ratio`: its interval has the confidence `confidence`; its p is that of a ratio of 1. `spread`
      is the range of the ratios of single units. `one_tells_most`: one unit makes more than half of
      the variance.
    - `p_holm`: corrected for the family. `together`: the interval that holds for the whole family,
      where the ratio alone says more than the family.
    - `bound`: the factor by which the instrument differs from itself, by the A/A test, or by the
      halves of slices; 1 without.
    - `counts`: how many units there are of the first and of the second.
    - `scope`: `within` if there are too few units for an interval over them, and for an answer.
    - `answered_at`: after how many sittings the answer was given; 0: not yet.
    - `tested`: False if no answer is sought. `why`: the reason for that, or for a missing ratio.
    - `lost`: only the second has the figure.
    - `first_value`, `second_value`: the figure itself, from the same units as the ratio.
    - `typical`: the median of rounds. `gap`: it differs from the ratio of totals by more than the
      margin. `lag1`: the correlation of neighbouring rounds.
    - `stopped_early`: an arm left the run once its questions were answered. Such a ratio is biased
      outwards, as the run goes on longer where the first data show less.
    - `needed`: the total number of units that would settle an open comparison. `narrow_at`: with
      how many its interval would be as narrow as the margin.
    """

    figure: str
    first: Cell
    second: Cell
    ratio: Interval | None = None
    confidence: float = CONFIDENCE
    p_holm: float | None = None
    answer: Answer = "open"
    bound: float = 1.0
    unit: Unit = "sitting"
    counts: tuple[int, int] = (0, 0)
    scope: Scope = "over"
    spread: tuple[float, float] | None = None
    one_tells_most: bool = False
    together: Interval | None = None
    first_value: Interval | None = None
    second_value: Interval | None = None
    through_reference: bool = False
    answered_at: int = 0
    typical: Interval | None = None
    lag1: float | None = None
    gap: bool = False
    stopped_early: bool = False
    needed: int | None = None
    narrow_at: int | None = None
    tested: bool = True
    lost: bool = False
    why: str = ""

    @property
    def count(self) -> int:
        """How many units the ratio is based on: the smaller number of both sides."""
        return min(self.counts)

    @property
    def within_own_error(self) -> bool:
        """Whether it is open as the instrument's own error, so far, is larger than the ratio."""
        if self.answer != "open" or self.needed is not None or self.ratio is None:
            return False
        return 1 / self.bound < self.ratio.value < self.bound

    def reversed(self) -> "Comparison":
        """The same comparison with the two in the other order."""
        return msgspec.structs.replace(
            self,
            first=self.second,
            second=self.first,
            ratio=_inverse(self.ratio),
            answer=OPPOSITE[self.answer],
            counts=self.counts[::-1],
            spread=(1 / self.spread[1], 1 / self.spread[0]) if self.spread else None,
            together=_inverse(self.together),
            first_value=self.second_value,
            second_value=self.first_value,
            typical=_inverse(self.typical),
        )


def _inverse(ratio: Interval | None) -> Interval | None:
    if ratio is None:
        return None
    return msgspec.structs.replace(
        ratio,
        value=_one_over(ratio.value),
        low=_one_over(ratio.high) if ratio.high is not None else None,
        high=_one_over(ratio.low) if ratio.low is not None else None,
    )


def _one_over(value: float) -> float:
    return 1 / value if value else math.inf
