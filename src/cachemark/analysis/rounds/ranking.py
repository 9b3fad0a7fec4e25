"""The order of arms by a figure, and whether the first of them may be named.

The order comes from the ratios that the report shows (`estimate_pair`): an arm is first if no other
arm is ahead of it by its own ratio to it. So a ranking cannot contradict its table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.rounds.contrast import Looked, RoundContrast, contrast_alone
from cachemark.analysis.rounds.pairs import Sittings, by_set, estimate_pair, first_sittings
from cachemark.analysis.statistics import Figure
from cachemark.model.outcome import Cell

# Why nobody is named first: some arms cannot be compared, or each is behind another one, or a
# comparison with an arm of another set is open.
NoFirst = Literal["", "apart", "circle", "across"]


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of a ranking, best first.

    `value` is its figure at the level that is common to all arms. `own` is the geometric mean of
    its own sittings: the machine may have been faster in these than in those of other arms.
    """

    cell: Cell
    value: float
    own: float


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The arms by a figure, and what is known about the first.

    `lead` is the first relative to the second, tested by itself; None if nobody is named first.
    `across` are the first relative to each arm that it never met. `set_leads` are the leads within
    each set, where there are several sets.
    """

    ranks: list[Rank]
    no_first: NoFirst = ""
    lead: RoundContrast | None = None
    across: list[RoundContrast] = []
    set_leads: list[RoundContrast] = []


def rank(sittings: Sittings, cells: Sequence[Cell], figure: Figure) -> list[Rank]:
    """The arms that have the figure in all of their sittings, the best one first."""
    return _rank(sittings, cells, figure)[0]


def _rank(sittings: Sittings, cells: Sequence[Cell], figure: Figure) -> tuple[list[Rank], NoFirst]:
    logs = _logs(sittings, cells, figure.name)
    if not logs:
        return [], ""
    sign = 1 if figure.more_is_better else -1

    def ahead(cell: Cell, other: Cell) -> float | None:
        """How far a cell is ahead of another one, on logarithms; None if nobody knows."""
        estimate = estimate_pair(sittings, cell, other, figure.name).estimate
        return sign * estimate.value if estimate else None

    # Whoever is ahead of all others wins against each champion, and then stays.
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
    order = sorted(compared, key=lambda cell: -compared[cell])
    order += sorted(apart, key=lambda cell: -sign * apart[cell])
    return [
        Rank(cell=cell, value=math.exp({**values, **apart}[cell]), own=math.exp(logs[cell]))
        for cell in order
    ], no_first


def beside(sittings: Sittings, first: Rank, cells: Sequence[Cell], figure: Figure) -> list[Rank]:
    """Arms that are no choices, at the level of the first of the ranking."""
    found: list[Rank] = []
    for cell, log in _logs(sittings, cells, figure.name).items():
        estimate = estimate_pair(sittings, cell, first.cell, figure.name).estimate
        value = first.value * math.exp(estimate.value) if estimate else math.exp(log)
        found.append(Rank(cell=cell, value=value, own=math.exp(log)))
    return found


def _logs(sittings: Sittings, cells: Sequence[Cell], figure: str) -> dict[Cell, float]:
    """The mean of ln of each arm's figure. An arm that lacks it in a sitting has none."""
    found: dict[Cell, float] = {}
    for cell in cells:
        values = [arms[cell].figures.get(figure) for arms in sittings.values() if cell in arms]
        logs = [math.log(value) for value in values if value]
        if logs and len(logs) == len(values):
            found[cell] = sum(logs) / len(logs)
    return found


def standing(looked: Looked, cells: Sequence[Cell], figure: Figure) -> Standing:
    """The ranking, and whether its first may be named.

    The first is tested against the second, and against every arm that it never met in a sitting:
    the interval of such a pair is wide, so the second may be told from the first while a later one
    is not. All of these tests must agree, so that none of them needs a correction.
    """
    ranks, no_first = _rank(looked.sittings, cells, figure)
    if len(ranks) < 2:
        return Standing(ranks=ranks)
    set_leads = _set_leads(looked, [of.cell for of in ranks], figure)
    if no_first:
        return Standing(ranks=ranks, no_first=no_first, set_leads=set_leads)
    first, second = ranks[0].cell, ranks[1].cell
    across = [
        contrast_alone(looked, (first, of.cell), figure.name)
        for of in ranks[1:]
        if estimate_pair(looked.sittings, first, of.cell, figure.name).through_reference
    ]
    is_open = any(contrast.answer == "open" for contrast in across)
    return Standing(
        ranks=ranks,
        no_first="across" if is_open else "",
        lead=None if is_open else contrast_alone(looked, (first, second), figure.name),
        across=across,
        set_leads=set_leads,
    )


def _set_leads(looked: Looked, cells: Sequence[Cell], figure: Figure) -> list[RoundContrast]:
    """The lead within each set of arms that played in turns; empty if there is only one set."""
    sets = _sets(looked.sittings, cells)
    found: list[RoundContrast] = []
    for members in sets if len(sets) > 1 else []:
        ranks, no_first = _rank(looked.sittings, members, figure)
        if len(ranks) > 1 and not no_first:
            found.append(contrast_alone(looked, (ranks[0].cell, ranks[1].cell), figure.name))
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


def undecided_firsts(looked: Looked, cells: Sequence[Cell], figure: Figure) -> frozenset[Cell]:
    """The arms that may still turn out to be first, while it is open which of them is; else nobody.

    In a large group they may all be told from the reference long before.
    """
    sittings = first_sittings(looked.sittings, looked.answered_at)
    ranked = standing(msgspec.structs.replace(looked, sittings=sittings), cells, figure)
    if ranked.lead is not None and ranked.lead.answer != "open":
        return frozenset()
    undecided = (
        [ranked.lead] if ranked.lead else [of for of in ranked.across if of.answer == "open"]
    )
    if not undecided:
        return frozenset(of.cell for of in ranked.ranks[:2])
    return frozenset(cell for of in undecided for cell in (of.first, of.second))
