"""Comparisons of the arms of a run: each with its interval, its answer, and what qualifies it."""

import math
from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.family import Decision, FamilyPair, decide, decide_chosen
from cachemark.analysis.rounds.halves import LogsOfHalves, error_of_turns, logs_of_halves
from cachemark.analysis.rounds.looks import MIN_SITTINGS, StopRule, narrow_at, needed
from cachemark.analysis.rounds.pairs import (
    COMPARED_FIGURES,
    ArmFigures,
    Sittings,
    estimate_pair,
    first_sittings,
)
from cachemark.analysis.rounds.questions import Question
from cachemark.analysis.rounds.sitting import SliceFigure, round_log_ratios, typical_round
from cachemark.analysis.statistics import Comparison, Interval, classify
from cachemark.model.outcome import Cell


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is looked at after `played` sittings; the answers are based on `answered_at`.

    `retired` are the arms that have left the run.
    """

    sittings: Sittings
    rule: StopRule
    played: int
    answered_at: int
    retired: frozenset[Cell] = frozenset()


class OwnErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The factors by which the instrument differs from itself.

    `bounds`: by the A/A tests of a run, for each workload, load, and what the cells have in common.
    `halves`: those of slices, which change a ratio of rates if turns do not affect both alike.
    """

    bounds: dict[tuple[str, str, str], float] = {}
    halves: LogsOfHalves = {}

    def of(self, pair: FamilyPair) -> float:
        """The factor for a pair."""
        return max(self.of_twice(pair), error_of_turns(self.halves, *pair))

    def of_twice(self, pair: FamilyPair) -> float:
        """The same by the A/A tests; 1 if no arm was played twice.

        If no arm of its question was, arms of the same work give it.
        """
        work = pair[0].workload, pair[0].load
        own = self.bounds.get((*work, _place(pair)))
        if own is not None:
            return own
        return max((of for key, of in self.bounds.items() if key[:2] == work), default=1.0)


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """All tests of a run by one figure.

    `pairs` has the answers of each family: that of all questions about clients, and that of all
    questions about servers. `family_sizes`: how many tests each family has. `all_pairs`: how many
    pairs of cells its questions have, of which the family of a large question is a part.
    """

    figure: str
    pairs: dict[FamilyPair, Decision]
    errors: OwnErrors
    family_sizes: dict[str, int]
    all_pairs: dict[str, int]


def _place(pair: FamilyPair) -> str:
    """The party that two cells share, in words: a server, or else a client."""
    first, second = pair
    return f"on {first.server}" if first.server == second.server else f"of {first.client}"


def look(
    sittings: Sittings, rule: StopRule, *, final: bool, retired: frozenset[Cell] = frozenset()
) -> Looked:
    """Look at a run; between two looks, the last answers stay."""
    played = max((key.block + 1 for key in sittings), default=0)
    return Looked(
        sittings=sittings,
        rule=rule,
        played=played,
        answered_at=rule.answered_at(played, final=final),
        retired=retired,
    )


def answer_questions(looked: Looked, questions: Sequence[Question], figure: str) -> Tested:
    """The answers of the last look by a figure, for all pairs of all questions.

    All questions of a kind are one family: so the probability of any false difference in a run is
    at most 5 % for each kind of question and figure.
    """
    errors = own_errors(looked, questions, figure)
    pairs: dict[FamilyPair, Decision] = {}
    sizes: dict[str, int] = {}
    every: dict[str, int] = {}
    for kind in dict.fromkeys(of.kind for of in questions):
        asked = [of for of in questions if of.kind == kind]
        family = {pair: errors.of(pair) for of in asked for pair in of.family}
        pairs.update(decide_pairs(looked, family, figure))
        sizes[kind] = len(family)
        every[kind] = sum(math.comb(len(of.cells), 2) for of in asked)
    return Tested(figure=figure, pairs=pairs, errors=errors, family_sizes=sizes, all_pairs=every)


def own_errors(looked: Looked, questions: Sequence[Question], figure: str) -> OwnErrors:
    """The far end of each A/A interval. All A/A intervals of the run hold together (Bonferroni)."""
    twice = [of.twice for of in questions if of.twice is not None]
    confidence = 1 - looked.rule.level / max(1, len(twice))
    bounds: dict[tuple[str, str, str], float] = {}
    for pair, estimate in _answerable(looked, twice, figure).items():
        ratio = estimate.ratio(confidence) if estimate else None
        if ratio and ratio.low and ratio.high:
            key = (pair[0].workload, pair[0].load, _place(pair))
            bounds[key] = max(ratio.high, 1 / ratio.low)
    counted = first_sittings(looked.sittings, looked.answered_at) if figure == "rate" else {}
    return OwnErrors(bounds=bounds, halves=logs_of_halves(counted))


def decide_pairs(
    looked: Looked, bounds: Mapping[FamilyPair, float], figure: str
) -> dict[FamilyPair, Decision]:
    """The answers of the last look for all pairs of a family, the keys of `bounds`."""
    return decide(
        _answerable(looked, list(bounds), figure),
        looked.rule,
        more_is_better=COMPARED_FIGURES[figure].more_is_better,
        bounds=bounds,
    )


def compare_pairs(
    looked: Looked, decisions: Mapping[FamilyPair, Decision], figure: str, tests: int
) -> dict[FamilyPair, Comparison]:
    """The comparisons of some pairs of a family of `tests` tests, with their answers."""
    return {pair: _comparison(looked, pair, figure, of, tests) for pair, of in decisions.items()}


def compare_chosen(
    looked: Looked,
    pair: FamilyPair,
    figure: str,
    pairs: int = 1,
    *,
    bound: float = 1.0,
    pairs_apart: int | None = None,
) -> Comparison:
    """The comparison of a pair outside of the family, corrected for `pairs` tests.

    A comparison that must agree with others needs a correction only for its equality: `pairs_apart`
    tests.
    """
    decision = decide_chosen(
        _answerable(looked, [pair], figure)[pair], looked.rule, pairs, pairs_apart=pairs_apart,
        more_is_better=COMPARED_FIGURES[figure].more_is_better, bound=bound,
    )  # fmt: skip
    return _comparison(looked, pair, figure, decision, pairs)


def describe(looked: Looked, pair: FamilyPair, figure: str) -> Comparison:
    """The ratio of a pair that nothing tests: its interval, and no answer."""
    comparison = _comparison(looked, pair, figure, Decision(), 1)
    return msgspec.structs.replace(comparison, tested=False, needed=None)


def holding_together(looked: Looked, of: Comparison, pairs: int, apart: float = 1.0) -> Comparison:
    """The comparison with an interval that holds for all `pairs` pairs together (Bonferroni).

    The first of a table is probably first because its sittings were lucky. Intervals of all pairs
    hold for its pairs, too. If the answer is a difference, the interval is beyond `apart`, the
    factor that its test has shown at least.
    """
    confidence = 1 - looked.rule.level / max(1, pairs)
    estimate = estimate_pair(looked.sittings, of.first, of.second, of.figure).estimate
    if estimate is None:
        return of
    ratio = estimate.ratio(confidence)
    return msgspec.structs.replace(
        of,
        ratio=ratio.beyond(apart) if of.answer in ("better", "worse") else ratio,
        confidence=confidence,
        narrow_at=narrow_at(estimate, looked.rule, confidence),
    )


def with_family_interval(looked: Looked, comparison: Comparison, tests: int) -> Comparison:
    """The same with the interval of the whole family, unless the answer is a difference.

    Of six equal arms, the intervals of single ratios held all together in 88 % of simulated runs.
    So the family's is added where the ratio alone leaves out 1, or would be an answer.
    """
    of = holding_together(looked, comparison, tests)
    own, wide = comparison.ratio, of.ratio
    told = comparison.scope == "within" or comparison.answer in ("better", "worse")
    if told or tests < 2 or not own or own.p is None or own.low is None:
        return comparison
    alone = classify(
        own, own.p, looked.rule.margin, level=looked.rule.level, bound=comparison.bound,
        more_is_better=COMPARED_FIGURES[comparison.figure].more_is_better,
    )  # fmt: skip
    added = own.p <= looked.rule.level or alone != comparison.answer
    return msgspec.structs.replace(comparison, together=wide if added else None)


def _answerable(
    looked: Looked, family: Sequence[FamilyPair], figure: str
) -> dict[FamilyPair, LogEstimate | None]:
    """Each pair's estimate at the last look; None if it had too little for an answer."""
    sittings = first_sittings(looked.sittings, looked.answered_at)
    estimates = {pair: estimate_pair(sittings, *pair, figure) for pair in family}
    return {pair: of.estimate if of.scope == "over" else None for pair, of in estimates.items()}


def _comparison(
    looked: Looked, pair: FamilyPair, figure: str, decision: Decision, tests: int
) -> Comparison:
    rule = looked.rule
    estimated = estimate_pair(looked.sittings, *pair, figure)
    plain = Comparison(
        first=pair[0],
        second=pair[1],
        figure=figure,
        confidence=rule.confidence,
        unit=rule.unit,
        counts=(estimated.sittings, estimated.sittings),
        scope=estimated.scope,
        through_reference=estimated.through_reference,
        lost=estimated.lost,
        why=estimated.why,
    )
    estimate = estimated.estimate
    if estimate is None:
        return plain
    ratio = estimate.ratio(rule.confidence)
    typical, lag1 = typical_ratio(looked.sittings, pair, figure, rule.confidence)
    is_open = decision.answer == "open" and estimated.scope == "over"
    return msgspec.structs.replace(
        plain,
        ratio=ratio,
        answered_at=looked.answered_at,
        answer=decision.answer,
        p_holm=decision.p_holm,
        bound=decision.bound,
        spread=estimate.spread,
        one_tells_most=estimate.one_tells_most,
        typical=typical,
        lag1=lag1,
        gap=typical is not None and _apart(typical.value, ratio.value, rule.margin),
        stopped_early=not looked.retired.isdisjoint(pair),
        needed=needed(estimate, rule, tests, decision.bound) if is_open else None,
        narrow_at=narrow_at(estimate, rule, rule.confidence),
    )


def _apart(one: float, two: float, margin: float) -> bool:
    return abs(math.log(one / two)) > math.log1p(margin) if one > 0 else two > 0


def typical_ratio(
    sittings: Sittings, pair: FamilyPair, figure: str, confidence: float
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


def _rounds(arms: Mapping[Cell, ArmFigures], pair: FamilyPair, figure: str) -> list[float] | None:
    """The log ratios of the rounds of one sitting; None without common rounds, or the figure."""
    if pair[0] not in arms or pair[1] not in arms or arms[pair[0]].members != arms[pair[1]].members:
        return None
    for name in get_args(SliceFigure):
        if name == figure:
            return round_log_ratios(arms[pair[0]].slices, arms[pair[1]].slices, name).tolist()
    return None
