"""From a ratio and a p value to one of four answers, with a margin declared beforehand.

A real difference may be too small to matter, and a difference that was not shown is no proof of
equality. So the first of two is *better* or *worse* if they differ by more than the margin, they
are *equal* if the whole interval of their ratio lies within the margin, and *open* otherwise.

Everything is decided on logarithms: twice as much and half as much are equally far from 1. So the
answer about A / B is the one about B / A the other way round.
"""

import math
from typing import Literal, TypeVar

from cachemark.analysis.statistics.interval import Interval

ALPHA = 0.05
Answer = Literal["better", "worse", "equal", "open"]
OPPOSITE: dict[Answer, Answer] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "open": "open",
}
_Named = TypeVar("_Named")


def classify(
    ratio: Interval | None,
    p: float | None,
    margin: float,
    *,
    more_is_better: bool,
    level: float = ALPHA,
    bound: float = 1.0,
    p_apart: float | None = None,
) -> Answer:
    """The decision about a ratio: an answer about the first of two cells.

    `p` belongs to a ratio of 1, and `p_apart` to a ratio beyond the margin. Both are already
    corrected for multiple tests; without `p_apart` the interval alone decides about equality.

    A margin of 0.05 is from 1/1.05 to 1.05. `better` and `worse` need p < level, and an estimate
    beyond the margin and beyond `bound`, the factor by which the instrument differs from itself.
    `equal` is two one-sided tests: the interval, and the instrument's own error, within the margin
    (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
    """
    if ratio is None or ratio.low is None or ratio.high is None or p is None:
        return "open"
    reach, own_error = math.log1p(margin), math.log(bound)
    inside = -reach <= _log(ratio.low) and _log(ratio.high) <= reach
    if own_error <= reach and inside and (p_apart is None or p_apart <= level):
        return "equal"
    if p <= level and abs(_log(ratio.value)) > max(reach, own_error):
        return "better" if (ratio.value > 1) == more_is_better else "worse"
    return "open"


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def holm(p: dict[_Named, float]) -> dict[_Named, float]:
    """Holm's step-down correction: with n tests the k-th smallest p is multiplied by n − k + 1.

    The probability of any false difference in the family is at most ALPHA, for any dependence
    between the tests. Holm, Scandinavian Journal of Statistics 6 (1979). A test without a result
    belongs to the family too: give it a p of 1.
    """
    corrected: dict[_Named, float] = {}
    highest = 0.0
    for position, name in enumerate(sorted(p, key=p.__getitem__)):
        highest = max(highest, min(1.0, p[name] * (len(p) - position)))
        corrected[name] = highest
    return corrected
