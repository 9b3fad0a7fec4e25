"""The order of arms by a figure, and whether the first of them may be named.

The order comes from the ratios that the report shows (`estimate_pair`): an arm is first if no other
arm is ahead of it by its own ratio to it. So a ranking cannot contradict its table.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.rounds.comparing import Looked, OwnErrors, compare_chosen
from cachemark.analysis.rounds.pairs import (
    COMPARED_FIGURES,
    Sittings,
    by_set,
    estimate_pair,
    first_sittings,
    own_figure,
    read_sittings,
)
from cachemark.analysis.rounds.questions import Question
from cachemark.analysis.statistics import Comparison, Figure, Interval, over_trials
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import repetition_of

# Why no first is named: some arms cannot be compared, or each is behind another one, or the
# first differs from the second, and not from a later one.
NoFirst = Literal["", "apart", "circle", "later"]
_NO_ERRORS = OwnErrors()


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of a ranking, best first.

    `value` is its figure at the level that is common to all arms. `own` is the geometric mean of
    its own sittings: the machine may have been faster in these than in other arms' sittings. A
    client that was played twice has a repetition, which is in its `value` only.
    """

    cell: Cell
    value: float
    own: float


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The arms by a figure, and what is known about the first.

    `lead` is the first relative to the second; None if no first is named. `against` are the
    first relative to each of the others: all of these tests must agree. `set_leads` are the leads
    within each set, where there are several sets.
    """

    ranks: list[Rank]
    no_first: NoFirst = ""
    lead: Comparison | None = None
    against: list[Comparison] = []
    set_leads: list[Comparison] = []

    @property
    def ahead(self) -> float:
        """The factor by which a named first is at least ahead of every other arm; 0 without one.

        The least near end of the tests that name it holds for all arms at once, without a
        correction (Stefansson, Kim, Hsu, On Confidence Sets in Multiple Comparisons, 1988).
        """
        if self.lead is None or any(of.answer != "better" for of in self.against):
            return 0.0
        ratios = [of.ratio for of in self.against if of.ratio]
        return max(1.0, min(max(of.low or 0, 1 / (of.high or 1)) for of in ratios))


def rank(sittings: Sittings, cells: Sequence[Cell], figure: Figure) -> tuple[list[Rank], NoFirst]:
    """The arms that have the figure in all of their sittings, the best one first."""
    own = _logs(sittings, cells, figure.name)
    logs = _logs(sittings, list(own), figure.name, of_both=True)
    if not logs:
        return [], ""
    sign = 1 if figure.more_is_better else -1

    def ahead(cell: Cell, other: Cell) -> float | None:
        """How far a cell is ahead of another one, on logarithms; None if unknown."""
        estimate = estimate_pair(sittings, cell, other, figure.name).estimate
        return sign * estimate.value if estimate else None

    # A cell that is ahead of all others becomes the champion, and stays it.
    champion, *others = logs
    for cell in others:
        if (ahead(cell, champion) or 0.0) > 0:
            champion = cell
    known = {cell: 0.0 if cell == champion else ahead(cell, champion) for cell in logs}
    compared = {cell: of for cell, of in known.items() if of is not None}
    level = sum(logs[cell] - sign * of for cell, of in compared.items()) / len(compared)
    values = {cell: level + sign * of for cell, of in compared.items()}
    apart = {cell: log for cell, log in logs.items() if cell not in compared}
    no_first: NoFirst = "apart" if apart else "circle" if max(compared.values()) > 0 else ""
    # A cell with the champion's lead may still be behind another arm.
    order = sorted(compared, key=lambda cell: (-compared[cell], cell != champion))
    order += sorted(apart, key=lambda cell: -sign * apart[cell])
    return [
        Rank(cell=cell, value=math.exp({**values, **apart}[cell]), own=math.exp(own[cell]))
        for cell in order
    ], no_first


def beside(sittings: Sittings, first: Rank, cells: Sequence[Cell], figure: Figure) -> list[Rank]:
    """Arms outside of a ranking, such as yardsticks: each by its ratio to the first."""
    found: list[Rank] = []
    for cell, log in _logs(sittings, cells, figure.name).items():
        estimate = estimate_pair(sittings, cell, first.cell, figure.name).estimate
        value = first.value * math.exp(estimate.value) if estimate else math.exp(log)
        found.append(Rank(cell=cell, value=value, own=math.exp(log)))
    return found


def _logs(
    sittings: Sittings, cells: Sequence[Cell], figure: str, *, of_both: bool = False
) -> dict[Cell, float]:
    """ln of each arm's own figure. An arm that lacks it in a sitting has none."""
    own = {cell: own_figure(sittings, cell, figure, of_both=of_both) for cell in cells}
    return {cell: log for cell, log in own.items() if log is not None}


def cell_figure(outcomes: Sequence[Outcome], cell: Cell, name: str) -> Interval | None:
    """A figure of a cell over its valid trials, as every table has it; None if one lacks it.

    `outcomes` are of one run, and may have other cells: the rate of a client that was played twice
    is of both arms.
    """
    valid = [of for of in outcomes if of.verdict == "VALID" and of.measure is not None]
    own = over_trials([of for of in valid if of.trial.cell == cell], COMPARED_FIGURES[name])
    if own is None or name != "rate":
        return own
    arms = [of for of in valid if of.trial.cell in (cell, repetition_of(cell))]
    sittings = read_sittings(arms, [name])
    alone, both = (own_figure(sittings, cell, name, of_both=of) for of in (False, True))
    return own if alone is None or both is None else own.times(math.exp(both - alone))


def standing(
    looked: Looked, question: Question, figure: Figure, errors: OwnErrors = _NO_ERRORS
) -> Standing:
    """The ranking, and whether its first may be named; `errors` are the instrument's own.

    The first is tested against every other arm, each time at the level of a single test. It is
    named if all of these tests agree, so none of them needs a correction (Berger, Technometrics 24,
    1982). The second alone is not enough: a later arm that varies more may well be the first. An
    arm that did not meet every other arm is not named either.
    """
    ranks, no_first = rank(looked.sittings, question.cells, figure)
    if len(ranks) < 2:
        return Standing(ranks=ranks)
    set_leads = _set_leads(looked, [of.cell for of in ranks], figure, errors)
    if no_first:
        return Standing(ranks=ranks, no_first=no_first, set_leads=set_leads)
    against = _against(looked, ranks, figure, errors, question.pairs_of_rows)
    lead, later = against[0], [of for of in against[1:] if of.answer != "better"]
    unmet = any(of.through_reference and of.answer == "open" for of in against)
    is_open = unmet or (lead.answer == "better" and bool(later))
    return Standing(
        ranks=ranks,
        no_first="later" if is_open else "",
        lead=None if is_open else lead,
        against=against,
        set_leads=set_leads,
    )


def _against(
    looked: Looked, ranks: Sequence[Rank], figure: Figure, errors: OwnErrors, pairs: int
) -> list[Comparison]:
    first, *others = ranks
    return [
        compare_chosen(looked, pair, figure.name, bound=errors.of(pair), pairs_apart=pairs)
        for pair in ((first.cell, of.cell) for of in others)
    ]


def _set_leads(
    looked: Looked, cells: Sequence[Cell], figure: Figure, errors: OwnErrors
) -> list[Comparison]:
    """The lead within each set of arms that played in turns; empty if there is only one set."""
    sets = _sets(looked.sittings, cells)
    found: list[Comparison] = []
    for members in sets if len(sets) > 1 else []:
        ranks, no_first = rank(looked.sittings, members, figure)
        if len(ranks) > 1 and not no_first:
            lead, *later = _against(looked, ranks, figure, errors, math.comb(len(ranks), 2))
            is_open = any(of.answer != "better" for of in later)
            found.append(msgspec.structs.replace(lead, answer="open") if is_open else lead)
    return found


def _sets(sittings: Sittings, cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells of each set. A set that arms have left is a part of the one that it was."""
    played: dict[frozenset[str], set[Cell]] = {}
    for _, arms in by_set(sittings):
        for cell, arm in arms.items():
            played.setdefault(frozenset(arm.members), set()).add(cell)
    whole = [labels for labels in played if not any(labels < other for other in played)]
    return [
        [
            cell
            for cell in cells
            if any(cell in of for labels, of in played.items() if labels <= home)
        ]
        for home in whole
    ]


def undecided_firsts(
    looked: Looked, question: Question, figure: Figure, errors: OwnErrors
) -> frozenset[Cell]:
    """The arms that may still turn out to be first, while it is open which of them is; else none.

    In a large group all of them may differ from the reference long before.
    """
    sittings = first_sittings(looked.sittings, looked.answered_at)
    ranked = standing(msgspec.structs.replace(looked, sittings=sittings), question, figure, errors)
    if ranked.no_first == "" and all(of.answer != "open" for of in ranked.against):
        return frozenset()
    undecided = [of for of in ranked.against if of.answer == "open"]
    if not undecided:
        return frozenset(of.cell for of in ranked.ranks[:2])
    return frozenset(cell for of in undecided for cell in (of.first, of.second))
