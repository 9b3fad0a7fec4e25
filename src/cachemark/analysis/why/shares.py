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
    kernel's time for what the findings name, less that for the findings of `other`, but at most
    all of it; `unexplained` is the rest. Both are None if the findings would clearly cost more
    than that: then a call costs less here than by itself, or `other` does what no rule names.
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
    explained = _cost(found, one.client)
    rest, error = kernel.value - explained.value, hypot(kernel.error, explained.error)
    if rest < -error or kernel.value < min(0.0, explained.value):
        return split
    return msgspec.structs.replace(
        split,
        explained=_scaled(explained, _part(explained, kernel.value)),
        unexplained=CountEstimate(value=max(0.0, rest), error=error),
    )


def fitting(found: Sequence[WhyFinding], time: TimeShares | None) -> list[WhyFinding]:
    """The findings, with costs that add up to what they explain; without, if they cannot."""
    if time is None:
        return list(found)
    if time.explained is None:
        return [msgspec.structs.replace(each, cost_us=None) for each in found]
    part = _part(_cost(found, time.client), time.explained.value)
    return [
        msgspec.structs.replace(each, cost_us=each.cost_us and _scaled(each.cost_us, part))
        for each in found
    ]


def _cost(found: Sequence[WhyFinding], client: str) -> CountEstimate:
    """The kernel's time for the findings of `client`, less that for the other's."""
    costs = [(each.cost_us, each.client == client) for each in found if each.cost_us]
    return CountEstimate(
        value=sum(cost.value if is_own else -cost.value for cost, is_own in costs),
        error=hypot(*(cost.error for cost, _ in costs)),
    )


def _part(cost: CountEstimate, most: float) -> float:
    return most / cost.value if cost.value > most else 1.0


def _scaled(cost: CountEstimate, part: float) -> CountEstimate:
    return CountEstimate(value=cost.value * part, error=cost.error * part)
