"""How much of a difference in CPU time each cause makes. Pure."""

from collections.abc import Sequence
from math import hypot

import msgspec

from cachemark.analysis.why.causes import WhyFinding
from cachemark.analysis.why.estimate import CONFIDENCE, CountEstimate, difference_of
from cachemark.model.counts import CountedWork


class TimeShares(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the CPU time that `client` takes beyond `other`, in µs of one operation.

    `more` is the whole difference, `own_code` the part of it in user mode. `explained` is the
    kernel's time for what the findings name, less that for the findings of `other`; `unexplained`
    is the rest of the kernel's time. Both are None if the findings would cost more than the
    difference: then a call costs less here than by itself, or `other` does what no rule names.
    """

    client: str
    other: str
    more: CountEstimate
    own_code: CountEstimate
    explained: CountEstimate | None = None
    unexplained: CountEstimate | None = None


def shares(
    one: CountedWork,
    other: CountedWork,
    found: Sequence[WhyFinding],
    confidence: float = CONFIDENCE,
) -> TimeShares | None:
    """The shares of both clients' findings in the difference between the two.

    None if the CPU time was not counted, or does not differ with this `confidence`.
    """
    more, own, kernel = (
        difference_of(one.repetitions, other.repetitions, figure)
        for figure in ("cpu_us", "user_us", "system_us")
    )
    sure = difference_of(one.repetitions, other.repetitions, "cpu_us", confidence)
    if more is None or own is None or kernel is None or sure is None:
        return None
    if more.value < 0:
        return shares(other, one, found, confidence)
    if more.value <= sure.error:
        return None
    split = TimeShares(client=one.client, other=other.client, more=more, own_code=own)
    costs = [(each.cost_us, each.client == one.client) for each in found if each.cost_us]
    explained = CountEstimate(
        value=sum(cost.value if is_own else -cost.value for cost, is_own in costs),
        error=hypot(*(cost.error for cost, _ in costs)),
    )
    rest = CountEstimate(
        value=kernel.value - explained.value, error=hypot(kernel.error, explained.error)
    )
    if rest.value < -rest.error:
        return split
    return msgspec.structs.replace(split, explained=explained, unexplained=rest)
