"""The ratio of a figure of two arms, over sittings: interval, answer, and what qualifies it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.family import Decision, Pair, decide, decide_chosen
from cachemark.analysis.rounds.looks import MIN_SITTINGS, Answer, StopRule, sittings_needed
from cachemark.analysis.rounds.pairs import (
    ArmFigures,
    Scope,
    Sittings,
    estimate_pair,
    first_sittings,
)
from cachemark.analysis.rounds.sitting import SliceFigure, round_log_ratios, typical_round
from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell


class RoundContrast(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio first / second of a figure, and the answer.

    - `scope`: `within` if there are too few sittings for an interval over them. The interval is
      then that of the rounds of these sittings, and there is no answer.
    - `confidence`: that of `ratio`. `p_holm` and `answer` are those of the last look, at
      `answered_at` sittings; 0: there was none.
    - `typical`: the median of rounds, and its interval. `gap`: it differs from the ratio of totals
      by more than the margin. `lag1`: the correlation of neighbouring rounds.
    - `stopped_early`: an arm left the run once its questions were answered. Such a ratio is biased
      outwards, as the run goes on longer where the first data show less.
    - `needed`: the total number of sittings that would settle an open pair.
    - `tested`: False if no answer is sought, because one of the two is no choice.
    - `why`: the reason if there is no ratio.
    """

    first: Cell
    second: Cell
    figure: str
    ratio: Interval | None = None
    confidence: float
    sittings: int = 0
    scope: Scope = "sittings"
    through_reference: bool = False
    answered_at: int = 0
    answer: Answer = "open"
    p_holm: float | None = None
    typical: Interval | None = None
    lag1: float | None = None
    gap: bool = False
    stopped_early: bool = False
    needed: int | None = None
    tested: bool = True
    why: str = ""

    def reversed(self) -> RoundContrast:
        """The same contrast with the arms in the other order."""
        return msgspec.structs.replace(
            self,
            first=self.second,
            second=self.first,
            ratio=_inverse(self.ratio) if self.ratio else None,
            typical=_inverse(self.typical) if self.typical else None,
            answer={"above": "below", "below": "above"}.get(self.answer, self.answer),
        )


def _inverse(ratio: Interval) -> Interval:
    """The interval of 1 / ratio."""
    return msgspec.structs.replace(
        ratio,
        value=_one_over(ratio.value),
        low=_one_over(ratio.high) if ratio.high is not None else None,
        high=_one_over(ratio.low) if ratio.low is not None else None,
    )


def _one_over(value: float) -> float:
    return 1 / value if value else math.inf


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is looked at after `played` sittings; the answers are based on `answered_at`.

    `retired` are the arms that have left the run.
    """

    sittings: Sittings
    rule: StopRule
    played: int
    answered_at: int
    retired: frozenset[Cell] = frozenset()


def look(
    sittings: Sittings, rule: StopRule, *, final: bool, retired: frozenset[Cell] = frozenset()
) -> Looked:
    """Look at a run; between two looks, the answers stay those of the last one."""
    played = max((key.block + 1 for key in sittings), default=0)
    return Looked(
        sittings=sittings,
        rule=rule,
        played=played,
        answered_at=rule.answered_at(played, final=final),
        retired=retired,
    )


def decide_family(looked: Looked, family: Sequence[Pair], figure: str) -> dict[Pair, Decision]:
    """The answers of the last look for all pairs of a family, with Holm's correction over it."""
    return decide(_answerable(looked, family, figure), looked.rule)


def contrast_family(
    looked: Looked, family: Sequence[Pair], figure: str
) -> dict[Pair, RoundContrast]:
    """The contrasts of all pairs of a family, with the answers of `decide_family`."""
    decisions = decide_family(looked, family, figure)
    return {
        pair: _contrast(looked, pair, figure, decision, len(family))
        for pair, decision in decisions.items()
    }


def contrast_alone(looked: Looked, pair: Pair, figure: str) -> RoundContrast:
    """The contrast of one pair, without correction: the winner's lead, or the A/A test.

    `decide_lead` says why the lead needs none.
    """
    return contrast_chosen(looked, pair, figure, pairs=1)


def contrast_chosen(looked: Looked, pair: Pair, figure: str, pairs: int) -> RoundContrast:
    """The contrast of a pair outside of the family, corrected for all `pairs` of its group."""
    estimate = _answerable(looked, [pair], figure)[pair]
    decision = decide_chosen(estimate, looked.rule, pairs)
    return _contrast(looked, pair, figure, decision, pairs)


def describe(looked: Looked, pair: Pair, figure: str) -> RoundContrast:
    """The ratio of a pair that nothing tests: its interval, and no answer."""
    contrast = _contrast(looked, pair, figure, Decision(), 1)
    return msgspec.structs.replace(contrast, tested=False, needed=None)


def _answerable(
    looked: Looked, family: Sequence[Pair], figure: str
) -> dict[Pair, LogEstimate | None]:
    """What the last look knew of each pair; None if it knew too little for an answer."""
    sittings = first_sittings(looked.sittings, looked.answered_at)
    estimates = {pair: estimate_pair(sittings, *pair, figure) for pair in family}
    return {pair: of.estimate if of.scope == "sittings" else None for pair, of in estimates.items()}


def _contrast(
    looked: Looked, pair: Pair, figure: str, decision: Decision, tests: int
) -> RoundContrast:
    rule = looked.rule
    estimated = estimate_pair(looked.sittings, *pair, figure)
    plain = RoundContrast(
        first=pair[0],
        second=pair[1],
        figure=figure,
        confidence=rule.confidence,
        sittings=estimated.sittings,
        scope=estimated.scope,
        through_reference=estimated.through_reference,
        why=estimated.why,
    )
    if estimated.estimate is None:
        return plain
    ratio = estimated.estimate.ratio(rule.confidence)
    typical, lag1 = typical_ratio(looked.sittings, pair, figure, rule.confidence)
    is_open = decision.answer == "open" and estimated.scope == "sittings"
    return msgspec.structs.replace(
        plain,
        ratio=ratio,
        answered_at=looked.answered_at,
        answer=decision.answer,
        p_holm=decision.p_holm,
        typical=typical,
        lag1=lag1,
        gap=typical is not None and _apart(typical.value, ratio.value, rule.margin),
        stopped_early=not looked.retired.isdisjoint(pair),
        needed=sittings_needed(estimated.estimate, rule, tests) if is_open else None,
    )


def _apart(one: float, two: float, margin: float) -> bool:
    """Whether two ratios differ by more than the margin."""
    return abs(math.log(one / two)) > math.log1p(margin) if one > 0 else two > 0


def typical_ratio(
    sittings: Sittings, pair: Pair, figure: str, confidence: float
) -> tuple[Interval | None, float | None]:
    """The typical round of a pair, and the mean lag-1 correlation of its rounds.

    With enough sittings, the sample is the median of each sitting. Below, the rounds of all
    sittings are the sample, and the interval is that of order statistics.
    """
    rounds = [
        found for arms in sittings.values() if (found := _rounds(arms, pair, figure)) is not None
    ]
    medians = [of for logs in rounds if (of := typical_round(logs, confidence)) is not None]
    lags = [of.lag1 for of in medians if of.lag1 is not None]
    lag1 = sum(lags) / len(lags) if lags else None
    if not medians:
        return None, None
    if len(medians) >= MIN_SITTINGS and all(of.ratio > 0 for of in medians):
        return mean_of_logs([math.log(of.ratio) for of in medians]).ratio(confidence), lag1
    pooled = typical_round([log for logs in rounds for log in logs], confidence)
    if pooled is None:
        return None, None
    return Interval(value=pooled.ratio, low=pooled.low, high=pooled.high), lag1


def _rounds(arms: Mapping[Cell, ArmFigures], pair: Pair, figure: str) -> list[float] | None:
    """The log ratios of the rounds of one sitting; None without common rounds, or the figure."""
    if pair[0] not in arms or pair[1] not in arms or arms[pair[0]].members != arms[pair[1]].members:
        return None
    for name in get_args(SliceFigure):
        if name == figure:
            return round_log_ratios(arms[pair[0]].slices, arms[pair[1]].slices, name).tolist()
    return None
