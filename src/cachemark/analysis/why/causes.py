"""The rules of causes.toml, and which of them two clients meet. Pure."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from cachemark.analysis.why.estimate import CountEstimate, difference_of, estimate_of
from cachemark.model.counts import CountedWork


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

    `count` and `other_count` are the figures of both; `more` is without what an earlier finding
    explains. `words` are a sentence's predicate.
    """

    cause: str
    client: str
    other: str
    figure: str
    count: float
    other_count: float
    more: CountEstimate
    words: str
    remedy: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cause: list[CauseRule]


@cache
def causes() -> tuple[CauseRule, ...]:
    """All rules, in their order."""
    text = resources.files("cachemark.analysis.why").joinpath("causes.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=_File).cause)


def findings(one: CountedWork, other: CountedWork) -> list[WhyFinding]:
    """The rules by which `one` does more than `other`, in the order of the rules."""
    found: list[WhyFinding] = []
    # Of each figure, the number that an earlier rule explains.
    covered: dict[str, float] = {}
    for rule in causes():
        if rule.kinds and one.kind not in rule.kinds:
            continue
        finding = _finding(rule, one, other, covered.get(rule.figure, 0.0))
        if finding is None:
            continue
        found.append(finding)
        for figure, each in {**rule.covers, rule.figure: 1.0}.items():
            covered[figure] = covered.get(figure, 0.0) + each * finding.more.value
    return found


def _finding(
    rule: CauseRule, one: CountedWork, other: CountedWork, covered: float
) -> WhyFinding | None:
    more = difference_of(one.repetitions, other.repetitions, rule.figure)
    mine = estimate_of(one.repetitions, rule.figure)
    others = estimate_of(other.repetitions, rule.figure)
    if more is None or mine is None or others is None:
        return None
    more = CountEstimate(value=more.value - covered, error=more.error)
    if more.value < rule.more or not more.is_clear or not _needs_met(rule, one, other):
        return None
    return WhyFinding(
        cause=rule.name,
        client=one.client,
        other=other.client,
        figure=rule.figure,
        count=mine.value,
        other_count=others.value,
        more=more,
        words=rule.words.format(more=number(more.value)),
        remedy=rule.remedy,
    )


def _needs_met(rule: CauseRule, one: CountedWork, other: CountedWork) -> bool:
    needed = {name: difference_of(one.repetitions, other.repetitions, name) for name in rule.needs}
    return all(more is not None and more.value >= rule.needs[name] for name, more in needed.items())


def number(value: float) -> str:
    """A count such as 2, 0.5 or 12.3; thousands without decimals."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
