"""From an interval and a p value to one of four answers, with a margin declared beforehand.

A real difference may be too small to matter, and a difference that was not shown is no proof of
equality. So a ratio is *above* or *below* if it differs by more than the margin, *equivalent* if
its whole interval lies within the margin, and *inconclusive* otherwise.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from cachemark.analysis.statistics.interval import Interval

ALPHA = 0.05
RatioAnswer = Literal["above", "below", "equivalent", "inconclusive"]
Name = TypeVar("Name")


class Tests(msgspec.Struct, frozen=True, kw_only=True):
    """How many tests a family has, and the level of each: its intervals hold 1 − level."""

    count: int = 1
    level: float = ALPHA

    @property
    def confidence(self) -> float:
        """The confidence of the interval of one test."""
        return 1 - self.level

    @property
    def family_confidence(self) -> float:
        """The confidence of an interval that holds for all tests together (Bonferroni)."""
        return 1 - self.level / max(1, self.count)


ONE_TEST = Tests()


def classify_ratio(
    ratio: Interval, p: float | None, margin: float, level: float = ALPHA
) -> RatioAnswer:
    """Which side of 1 a ratio is on; `p` is already corrected for multiple tests.

    `equivalent` is two one-sided tests at 2.5 % each (Schuirmann, Journal of Pharmacokinetics and
    Biopharmaceutics 15, 1987). This is stricter than the usual 5 %, and the printed interval shows
    the result.
    """
    if ratio.low is None or ratio.high is None or p is None:
        return "inconclusive"
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return "equivalent"
    if p < level and abs(ratio.value - 1) > margin and not ratio.low <= 1 <= ratio.high:
        return "above" if ratio.value > 1 else "below"
    return "inconclusive"


def holm(p: dict[Name, float], family: int = 0) -> dict[Name, float]:
    """Holm's step-down correction: with n tests the k-th smallest p is multiplied by n − k + 1.

    The probability of any false difference in the family is at most ALPHA, for any dependence
    between the tests. Holm, Scandinavian Journal of Statistics 6 (1979).

    `family` is the number of tests if the family has more than those in `p`. The others are taken
    to have larger p values, which can only make the result more cautious.
    """
    corrected: dict[Name, float] = {}
    tests = max(family, len(p))
    highest = 0.0
    for position, name in enumerate(sorted(p, key=p.__getitem__)):
        highest = max(highest, min(1.0, p[name] * (tests - position)))
        corrected[name] = highest
    return corrected
