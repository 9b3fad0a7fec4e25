"""The whole answer of `cachemark why`, as values. Pure."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.why.causes import WhyFinding, figures_in_doubt, findings
from cachemark.analysis.why.estimate import all_confidence
from cachemark.analysis.why.profile import ProfileShares
from cachemark.analysis.why.shares import TimeShares, fitting, shares
from cachemark.model.counts import CountedWork, FoldedStacks, UnitCosts


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A client and the first one, in one kind of operation; of known costs, the dearest is first.

    `findings` has what the client does more, `findings_of_base` what the first one does more;
    `time` is None if their CPU time is not known to differ.
    """

    kind: str
    client: str
    base: str
    findings: list[WhyFinding]
    findings_of_base: list[WhyFinding]
    time: TimeShares | None = None


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The counts, and the differences that the rules find between clients.

    If servers were counted, their names stand for clients' names, and `player` is the client.
    `unit_costs` has one entry for each repetition. `missing` says what could not be counted here,
    and the remedy. `shares` comes from the `profiles`, if clients were sampled.
    """

    work: str
    server: str
    player: str = ""
    repeat: int
    counted: list[CountedWork]
    differences: list[Difference]
    unit_costs: list[UnitCosts] = []
    missing: list[str] = []
    profiles: list[FoldedStacks] = []
    shares: list[ProfileShares] = []


def differences(
    counted: Sequence[CountedWork], units: Sequence[UnitCosts] = (), *, of_servers: bool = False
) -> list[Difference]:
    """Every client against itself in the past or the first one, by kind.

    Kinds that one of both lacks are left out, and a cache in the process beside a server's client.
    Chance names a cause in at most 1 of 100 answers, or other CPU time. Servers get no remedies.
    """
    past = {(of.past_client, of.kind): of for of in counted if of.past_client}
    firsts: dict[str, CountedWork] = {}
    pairs = [(each, firsts.setdefault(each.kind, each)) for each in counted]
    pairs = [(each, past.get((each.client, each.kind), first)) for each, first in pairs]
    pairs = [(each, base) for each, base in pairs if _comparable(base, each)]
    of_causes = all_confidence(sum(len(figures_in_doubt(*pair)) for pair in pairs))
    of_times = all_confidence(len(pairs))
    found: list[Difference] = []
    for each, base in pairs:
        own = _dearest_first(findings(each, base, units, of_causes))
        of_base = _dearest_first(findings(base, each, units, of_causes))
        time = shares(each, base, [*own, *of_base], of_times)
        fitted = fitting([*own, *of_base], time)
        fitted = [msgspec.structs.replace(of, remedy="") for of in fitted] if of_servers else fitted
        found.append(
            Difference(
                kind=each.kind,
                client=each.client,
                base=base.client,
                findings=fitted[: len(own)],
                findings_of_base=fitted[len(own) :],
                time=time,
            )
        )
    return found


def _dearest_first(found: Sequence[WhyFinding]) -> list[WhyFinding]:
    """The findings with known costs change places among themselves; waits, as effects, do not."""

    def cost_us(of: WhyFinding) -> float:
        costs = (of.cost_us, of.own_us) if of.figure != "switches" else ()
        return sum(each.value for each in costs if each)

    dearest = iter(sorted(filter(cost_us, found), key=cost_us, reverse=True))
    return [next(dearest) if cost_us(each) else each for each in found]


def _comparable(base: CountedWork, other: CountedWork) -> bool:
    """Both were counted, the other today, and both use a server or neither does."""
    if base is other or other.past_client or base.failure or other.failure:
        return False
    served = [each.repetitions[0].turns is not None for each in (base, other)]
    return served[0] == served[1]
