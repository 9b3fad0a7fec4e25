"""The rules of causes.toml, and which of them two clients meet. Pure."""

import re
from collections.abc import Mapping, Sequence
from math import hypot
from operator import mul
from pathlib import Path

import msgspec

from cachemark.analysis.why.estimate import (
    CONFIDENCE,
    CountEstimate,
    difference_of,
    differences_of,
    estimate_of,
    mean_of,
)
from cachemark.model.counts import COSTING, CountedWork, UnitCosts
from cachemark.model.shipped_rows import shipped_rows


class CauseRule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"needs": "with"}
):
    """A rule; causes.toml explains its fields."""

    name: str
    figure: str
    more: float
    words: str
    remedy: str
    kinds: list[str] = []
    needs: dict[str, float] = {}
    covers: dict[str, float] = {}


class WhyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that holds: for each operation, `client` has `more` of `figure` than `other`.

    `count` and `other_count` are the figures of both; `more` is without the `covered` ones, which
    earlier findings explain. `words` are a sentence's predicate. `cost_us` is the kernel's CPU time
    for it: None if no call causes it, or its cost is unknown. `own_us`: that of the allocations.
    """

    cause: str
    client: str
    other: str
    figure: str
    count: float
    other_count: float
    more: CountEstimate
    covered: float = 0.0
    words: str
    remedy: str
    cost_us: CountEstimate | None = None
    own_us: CountEstimate | None = None


_MALLOC = {"c", "rust"}  # languages that allocate with it
_ONE_OR_SEVERAL = re.compile(r"\{([^{}|]+)\|([^{}|]+)\}")


def causes() -> tuple[CauseRule, ...]:
    """All rules, in their order."""
    return shipped_rows(Path(__file__).with_name("causes.toml"), "cause", CauseRule)


def figures_in_doubt(one: CountedWork, other: CountedWork) -> set[str]:
    """The figures that differ enough for a rule: chance alone could pass these tests.

    Chance makes the root mean square, which decides this, independent of the mean over its error,
    which names a cause: so these are a fair number of tests.
    """

    def size(figure: str) -> float:
        found = differences_of(one.repetitions, other.repetitions, figure)
        squares = [each**2 for each in found if each is not None]
        return (sum(squares) / len(squares)) ** 0.5 if squares else 0.0

    return {rule.figure for rule in causes() if size(rule.figure) >= rule.more}


def findings(
    one: CountedWork,
    other: CountedWork,
    units: Sequence[UnitCosts] = (),
    confidence: float = CONFIDENCE,
) -> list[WhyFinding]:
    """The rules by which `one` does more than `other`, in the order of the rules.

    `units` are what single calls cost, in each repetition. A count of `one` is larger with this
    `confidence`. Allocations have no cost if it exceeds the difference of both clients' own code.
    """
    found: list[WhyFinding] = []
    # Figure → the amount that an earlier rule explains.
    covered: dict[str, float] = {}
    for rule in causes():
        if rule.kinds and one.kind not in rule.kinds:
            continue
        finding = _finding(rule, one, other, covered.get(rule.figure, 0.0), confidence)
        if finding is None:
            continue
        explained = {
            figure: each * finding.more.value
            for figure, each in {**rule.covers, rule.figure: 1.0}.items()
        }
        calls = {
            figure: min(number, _left(figure, one, other, covered))
            for figure, number in explained.items()
        }
        own_us = _own_cost(calls.get("allocations", 0.0), one, other, units)
        cost_us = _cost(calls, units, finding.more.error / finding.more.value)
        found.append(msgspec.structs.replace(finding, cost_us=cost_us, own_us=own_us))
        for figure, number in explained.items():
            covered[figure] = covered.get(figure, 0.0) + number
    own_us = sum(each.own_us.value for each in found if each.own_us)
    more = difference_of(one.repetitions, other.repetitions, "user_us")
    if more is None or own_us > more.value:
        return [msgspec.structs.replace(each, own_us=None) for each in found]
    return found


def _left(figure: str, one: CountedWork, other: CountedWork, covered: Mapping[str, float]) -> float:
    """How many more of a figure `one` has than `other`, without what earlier rules explain."""
    more = difference_of(one.repetitions, other.repetitions, figure)
    return max(0.0, more.value - covered.get(figure, 0.0)) if more else 0.0


def _cost(
    calls: Mapping[str, float], units: Sequence[UnitCosts], calls_error: float
) -> CountEstimate | None:
    """The kernel's CPU time for the `calls`, in µs, from the costs in each repetition.

    `calls_error` is the relative error of their number.
    """
    costing = {figure: number for figure, number in calls.items() if number and figure in COSTING}
    costs = [[getattr(unit, figure) for figure in costing] for unit in units]
    if not costing or any(None in each for each in costs):
        return None
    cost = mean_of([sum(map(mul, costing.values(), each)) for each in costs])
    error = hypot(cost.error, cost.value * calls_error) if cost else 0.0
    return cost and CountEstimate(value=cost.value, error=error)


def _own_cost(
    allocations: float, one: CountedWork, other: CountedWork, units: Sequence[UnitCosts]
) -> CountEstimate | None:
    """The CPU time of allocations; None if both clients have other allocators."""
    languages = {(of.past_client or of.client).partition("/")[0] for of in (one, other)}
    if languages <= _MALLOC:
        costs = [unit.allocations for unit in units]
    else:
        costs = [each.allocation_us for each in one.repetitions if len(languages) == 1]
    known = [allocations * cost for cost in costs if cost and allocations]
    return mean_of(known) if len(known) == len(costs) else None


def _finding(
    rule: CauseRule, one: CountedWork, other: CountedWork, covered: float, confidence: float
) -> WhyFinding | None:
    more = difference_of(one.repetitions, other.repetitions, rule.figure)
    sure = difference_of(one.repetitions, other.repetitions, rule.figure, confidence)
    mine = estimate_of(one.repetitions, rule.figure)
    others = estimate_of(other.repetitions, rule.figure)
    if more is None or sure is None or mine is None or others is None:
        return None
    more = CountEstimate(value=more.value - covered, error=more.error)
    if more.value < rule.more or more.value <= sure.error or not _needs_met(rule, one, other):
        return None
    return WhyFinding(
        cause=rule.name,
        client=one.client,
        other=other.client,
        figure=rule.figure,
        count=mine.value,
        other_count=others.value,
        more=more,
        covered=covered,
        words=_in_words(rule.words, number(more.value)),
        remedy=rule.remedy,
    )


def _in_words(words: str, more: str) -> str:
    return _ONE_OR_SEVERAL.sub(r"\1" if more == "1" else r"\2", words).replace("{more}", more)


def _needs_met(rule: CauseRule, one: CountedWork, other: CountedWork) -> bool:
    needed = {name: difference_of(one.repetitions, other.repetitions, name) for name in rule.needs}
    return all(more is not None and more.value >= rule.needs[name] for name, more in needed.items())


def rounded(value: float, decimals: int) -> str:
    """Such as 1,055 or 0.25; without decimals that are 0, and never -0."""
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if decimals else text
    return "0" if text == "-0" else text


def number(value: float) -> str:
    """A count such as 2, 0.5 or 12.3; thousands without decimals."""
    return rounded(value, 0 if abs(value) >= 1000 else 1)
