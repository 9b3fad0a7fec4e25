"""The answers of a run that was played in turns: one ranking for each question and figure.

The same function serves the display of a run that goes on, and its report. Only whole blocks may be
handed in: with half of a block's outcomes, the last look would come too early for some arms.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from cachemark.analysis.rounds.carry_over import CarryOverTable, carry_over
from cachemark.analysis.rounds.comparing import (
    Looked,
    Tested,
    answer_questions,
    compare_chosen,
    compare_pairs,
    describe,
    holding_together,
    look,
)
from cachemark.analysis.rounds.drift import ArmDrift, drifts
from cachemark.analysis.rounds.family import FamilyPair
from cachemark.analysis.rounds.halves import SliceHalves, slice_halves
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.narrowing import Narrowing, narrowings
from cachemark.analysis.rounds.pairs import (
    ROUND_FIGURES,
    ArmFigures,
    SittingKey,
    Sittings,
    by_set,
    primary_figure,
    read_sittings,
    retired_arms,
)
from cachemark.analysis.rounds.questions import Question
from cachemark.analysis.rounds.ranking import NoFirst, Rank, Standing, beside, standing
from cachemark.analysis.rounds.round_timeline import RoundTimeline, round_timelines
from cachemark.analysis.rounds.steal import ArmSteal, steal
from cachemark.analysis.statistics import Comparison, Interval
from cachemark.model.outcome import Cell, Outcome


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's place in a ranking; `value` and `own` are in the figure's unit.

    `value` is the figure at the level that is common to all cells, `own` the geometric mean of the
    cell's own sittings. `to_winner` and `to_reference`: this cell's figure relative to theirs; None
    for themselves, and where the first of the ranking is alone.
    """

    cell: Cell
    name: str
    value: float
    own: float
    to_winner: Comparison | None
    to_reference: Comparison | None


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a question by one figure, the best one first.

    `lead` is the winner relative to its runner-up; None if no first is named, for the reason
    `no_first`. `against` are the first relative to each of the others, each tested by itself: it is
    named if all of them agree. `set_leads` are the leads within each set, where there are several.
    `beside` are cells that are no choices, such as the yardstick, relative to the winner. `pairs`
    is the family. `twice` is the A/A test, `bound` the factor by which the instrument differs from
    itself: smaller differences are no answers.
    """

    figure: str
    title: str
    unit: str
    more_is_better: bool
    places: list[Place]
    lead: Comparison | None
    no_first: NoFirst = ""
    against: list[Comparison] = []
    set_leads: list[Comparison] = []
    beside: list[Place] = []
    pairs: list[Comparison]
    twice: Comparison | None
    bound: float = 1.0


class RateAndCpu(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of the rate and the client's CPU time per operation about a pair.

    `agree`: the faster client needs less CPU time. `disagree`: it needs more. `cpu`, `rate`: only
    this one shows a difference.
    """

    rate: Comparison
    cpu: Comparison
    verdict: Literal["agree", "disagree", "cpu", "rate"]


class GroupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question: a ranking by each figure that all of its cells have.

    `primary` is the figure that the question is decided by: the rate of closed loops, the p99 of
    open ones. Of a run that is over: `narrowing` is how its intervals narrowed, and `timeline` has
    the ratios round by round, of the figures that a round has.
    """

    question: Question
    primary: str
    rankings: list[Ranking]
    rate_and_cpu: list[RateAndCpu]
    narrowing: list[Narrowing] = []
    timeline: list[RoundTimeline] = []

    def ranking(self, figure: str) -> Ranking | None:
        """The ranking by a figure; None if there is none."""
        return next((of for of in self.rankings if of.figure == figure), None)

    @property
    def settled(self) -> bool:
        """Whether every pair, and the lead, is answered by the primary figure."""
        if not self.question.compares:
            return True
        ranking = self.ranking(self.primary)
        if ranking is None or ranking.lead is None:
            return False
        return all(of.answer != "open" for of in (*ranking.pairs, *ranking.against))


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """All answers of a run after `sittings` sittings, as of the look at `answered_at`; 0: none yet.

    `next_look` is None after the last one. `carry_over` has a table for each set of arms.
    `drifts` covers all sets, once the run is over. `halves` compares the halves of slices, by arm.
    `steal` is empty if the arms lost no CPU time.
    `more_sittings`: how many more would settle the open questions; None: none is open, or unknown.
    """

    rule: StopRule
    sittings: int
    answered_at: int
    next_look: int | None
    groups: list[GroupAnswer]
    carry_over: list[CarryOverTable]
    drifts: list[ArmDrift] = []
    halves: list[SliceHalves] = []
    steal: list[ArmSteal] = []
    more_sittings: int | None

    @property
    def settled(self) -> bool:
        """Whether all questions are answered."""
        return all(group.settled for group in self.groups)


def answers(
    outcomes: Sequence[Outcome],
    questions: Sequence[Question],
    rule: StopRule,
    *,
    final: bool,
    figures: Sequence[str] = tuple(ROUND_FIGURES),
) -> Answers:
    """The answers after some whole blocks; `final`: the run is over."""
    sittings = read_sittings(outcomes, figures)
    looked = look(sittings, rule, final=final, retired=retired_arms(outcomes, rule.looks))
    open_loops = {of.trial.cell.load for of in outcomes if of.load.schedule != "closed"}
    tested = {name: answer_questions(looked, questions, name) for name in figures}
    groups = [
        _group(looked, question, tested, primary_figure(closed=question.load not in open_loops))
        for question in questions
    ]
    if final:
        groups = [_with_history(looked, group) for group in groups]
    return Answers(
        rule=rule,
        sittings=looked.played,
        answered_at=looked.answered_at,
        next_look=None if final else next((at for at in rule.looks if at > looked.played), None),
        groups=groups,
        carry_over=[table for of in _whole_sets(sittings) if (table := carry_over(of))],
        drifts=[of for arms in _whole_sets(sittings) for of in drifts(arms)] if final else [],
        halves=slice_halves(sittings),
        steal=steal(sittings),
        more_sittings=_more_sittings(groups),
    )


def _group(
    looked: Looked, question: Question, tested: Mapping[str, Tested], primary: str
) -> GroupAnswer:
    # The schedule of an open loop sets the rate, so the rate says nothing about the client.
    shown = [of for name, of in tested.items() if name != "rate" or primary == "rate"]
    every = [_ranking(looked, question, of) for of in shown]
    rankings = [ranking for ranking in every if ranking.places]
    return GroupAnswer(
        question=question,
        primary=primary,
        rankings=rankings,
        rate_and_cpu=_rate_and_cpu({of.figure: of for of in rankings}),
    )


def _with_history(looked: Looked, group: GroupAnswer) -> GroupAnswer:
    ranking = group.ranking(group.primary)
    arms = [(place.cell, place.name) for place in ranking.places] if ranking else []
    return msgspec.structs.replace(
        group,
        narrowing=narrowings(looked, arms, group.primary),
        timeline=round_timelines(looked.sittings, arms, "rate") if group.primary == "rate" else [],
    )


def _ranking(looked: Looked, question: Question, tested: Tested) -> Ranking:
    figure = ROUND_FIGURES[tested.figure]
    bound = tested.errors.of_twice((question.cells[0], question.cells[-1]))
    ranked = standing(looked, question, figure, tested.errors)
    decisions = {pair: tested.pairs[pair] for pair in question.family}
    pairs = compare_pairs(looked, decisions, figure.name, tested.family_sizes[question.kind])
    table = _Table(looked, tested, pairs, ranked, question)
    return Ranking(
        figure=figure.name,
        title=figure.title,
        unit=figure.unit,
        more_is_better=figure.more_is_better,
        places=[table.place(of) for of in ranked.ranks],
        lead=table.lead(),
        no_first=ranked.no_first,
        against=ranked.against,
        set_leads=ranked.set_leads,
        beside=[
            table.place(of)
            for first in ranked.ranks[:1]
            for of in beside(looked.sittings, first, question.beside, figure)
        ],
        pairs=list(pairs.values()),
        twice=describe(looked, question.twice, figure.name) if question.twice else None,
        bound=bound,
    )


class _Table:
    """The places of a ranking, with the comparisons of any two cells in the order asked for."""

    def __init__(
        self,
        looked: Looked,
        tested: Tested,
        pairs: Mapping[FamilyPair, Comparison],
        found: Standing,
        question: Question,
    ) -> None:
        self._looked, self._tested, self._found = looked, tested, found
        self._question, self._known = question, dict(pairs)
        unknown = not found.ranks or found.no_first in ("apart", "circle")
        self._winner = None if unknown else found.ranks[0].cell
        self._behind = {of.second: of.reversed() for of in found.against if found.ahead}

    def lead(self) -> Comparison | None:
        """The lead, with the interval that it has in the table."""
        return self._together(self._found.lead) if self._found.lead else None

    def place(self, of: Rank) -> Place:
        to_winner = self._behind.get(of.cell)
        if to_winner is None and self._winner:
            to_winner = self._ratio(of.cell, self._winner)
        return Place(
            cell=of.cell,
            name=self._question.name(of.cell),
            value=of.value,
            own=of.own,
            to_winner=_over_sittings(self._together(to_winner)) if to_winner else None,
            to_reference=self._ratio(of.cell, self._question.reference),
        )

    def _together(self, of: Comparison) -> Comparison:
        """The comparison with an interval that holds for the table, and agrees with its answer."""
        apart = self._found.ahead if {of.first, of.second} & self._behind.keys() else 1.0
        return holding_together(self._looked, of, self._question.pairs_of_rows, apart)

    def _ratio(self, cell: Cell, other: Cell) -> Comparison | None:
        """The comparison cell / other; None for a cell with itself."""
        if cell == other:
            return None
        if (cell, other) in self._known:
            return self._known[cell, other]
        if (other, cell) in self._known:
            return self._known[other, cell].reversed()
        pair, figure = (cell, other), self._tested.figure
        # The family of a large group has pairs with the reference only.
        size = self._tested.all_pairs[self._question.kind]
        if cell in self._question.beside:
            size = self._question.pairs_of_rows
        bound = self._tested.errors.of(pair)
        return compare_chosen(self._looked, pair, figure, size, bound=bound)


def _over_sittings(of: Comparison) -> Comparison:
    """The comparison without an interval *within* a few sittings: tables cannot mark such ones."""
    if of.scope == "over" or of.ratio is None:
        return of
    return msgspec.structs.replace(of, ratio=Interval(value=of.ratio.value))


def _rate_and_cpu(rankings: dict[str, Ranking]) -> list[RateAndCpu]:
    """The pairs of which the rate, the CPU time or both show a difference."""
    if "rate" not in rankings or "client-cpu" not in rankings:
        return []
    found: list[RateAndCpu] = []
    both = zip(rankings["rate"].pairs, rankings["client-cpu"].pairs, strict=True)
    for rate, cpu in both:
        differ = [of.answer in ("better", "worse") for of in (rate, cpu)]
        if all(differ):
            verdict = "agree" if rate.answer == cpu.answer else "disagree"
        elif any(differ):
            verdict = "rate" if differ[0] else "cpu"
        else:
            continue
        found.append(RateAndCpu(rate=rate, cpu=cpu, verdict=verdict))
    return found


def _whole_sets(sittings: Sittings) -> list[dict[SittingKey, Mapping[Cell, ArmFigures]]]:
    """The sittings of each set; one that has lost arms is counted as long as it had all."""
    sets: dict[frozenset[Cell], dict[SittingKey, Mapping[Cell, ArmFigures]]] = {}
    for key, arms in by_set(sittings):
        home = next((whole for whole in sets if whole >= arms.keys()), frozenset(arms))
        sets.setdefault(home, {})[key] = arms
    return list(sets.values())


def _more_sittings(groups: Sequence[GroupAnswer]) -> int | None:
    """How many more sittings settle the open questions by the primary figures; None if unknown."""
    more: list[int] = []
    for group in groups:
        ranking = group.ranking(group.primary)
        comparisons = [*ranking.pairs, *ranking.against] if ranking else []
        for of in comparisons:
            if of.answer != "open":
                continue
            if of.needed is None:
                return None
            more.append(max(1, of.needed - of.count))
    return max(more, default=None)
