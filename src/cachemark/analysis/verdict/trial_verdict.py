"""Findings of the rules, and the verdict that follows from them."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.verdict.withholding import Judged
from cachemark.model.outcome import Finding, LagBound, Stationarity, Verdict, Weight, Withheld

# The worst finding decides.
_ORDER: tuple[Verdict, ...] = ("INVALID", "OVERLOAD", "NON_STATIONARY")


class TrialVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with its reasons and notes.

    `findings` has all of them in machine-readable form: rule, weight, figure, limit. `withheld` and
    `lag_bounds` are about single percentiles.
    """

    verdict: Verdict
    reasons: list[str]
    notes: list[str]
    findings: list[Finding] = []
    withheld: list[Withheld] = []
    lag_bounds: list[LagBound] = []
    stationarity: Stationarity | None = None


def conclude(
    findings: Sequence[Finding],
    stationarity: Stationarity | None = None,
    judged: Judged | None = None,
) -> TrialVerdict:
    """The verdict that follows from findings; its reasons are the findings of the same weight."""
    reached: list[Verdict] = [
        each for each in _ORDER if any(found.weight == each for found in findings)
    ]
    verdict: Verdict = reached[0] if reached else "VALID"
    return TrialVerdict(
        verdict=verdict,
        reasons=[found.text for found in findings if found.weight == verdict],
        notes=[found.text for found in findings if found.weight == "note"],
        findings=list(findings),
        withheld=judged.withheld if judged else [],
        lag_bounds=judged.lag_bounds if judged else [],
        stationarity=stationarity,
    )


def with_more(verdict: TrialVerdict, more: Judged) -> TrialVerdict:
    """The verdict that follows with more findings; what is withheld stays so."""
    judged = Judged(
        withheld=[*verdict.withheld, *more.withheld],
        lag_bounds=[*verdict.lag_bounds, *more.lag_bounds],
    )
    return conclude([*verdict.findings, *more.findings], verdict.stationarity, judged)


def invalid_finding(rule: str, text: str) -> Finding:
    """A finding that makes the trial INVALID."""
    return Finding(rule=rule, weight="INVALID", text=text)


def limit_finding(
    rule: str, text: str, figure: float, limit: float, unit: str, *, weight: Weight = "INVALID"
) -> Finding:
    """A finding of a figure that is beyond its limit."""
    return Finding(rule=rule, weight=weight, text=text, figure=figure, limit=limit, unit=unit)


def note_finding(rule: str, text: str) -> Finding:
    """A finding that is only noted."""
    return Finding(rule=rule, weight="note", text=text)
