"""The order of arms by a figure, from what they have in common with their sittings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from cachemark.analysis.rounds.contrast import Looked, RoundContrast, contrast_alone
from cachemark.analysis.rounds.pairs import Sittings, first_sittings
from cachemark.analysis.statistics import Figure
from cachemark.model.outcome import Cell


def arm_effects(sittings: Sittings, cells: Sequence[Cell], figure: str) -> dict[Cell, float]:
    """ln of each arm's figure, by the fit log figure ~ arm + sitting.

    Plain means would rank arms by the sittings in which they happened to be valid, or to play. All
    effects together have the level of the run. Arms that lack the figure somewhere have no effect.
    """
    rows: list[tuple[int, int, float]] = []
    lacking: set[Cell] = set()
    place = {cell: number for number, cell in enumerate(cells)}
    for number, arms in enumerate(sittings.values()):
        for cell, arm in arms.items():
            value = arm.figures.get(figure)
            if cell in place and value:
                rows.append((place[cell], number, math.log(value)))
            elif cell in place:
                lacking.add(cell)
    if not rows:
        return {}
    found = _fit(rows, len(cells), len(sittings))
    present = {cells[arm] for arm, _, _ in rows} - lacking
    return {cell: found[place[cell]] for cell in cells if cell in present}


def _fit(rows: Sequence[tuple[int, int, float]], arms: int, sittings: int) -> list[float]:
    """The effects of arms, by least squares; those of the sittings have the mean 0."""
    design = np.zeros((len(rows) + 1, arms + sittings))
    for index, (arm, sitting, _) in enumerate(rows):
        design[index, arm] = design[index, arms + sitting] = 1
    # Without this row the level could be in the arms or in the sittings.
    design[-1, arms:] = 1
    target = np.array([*(log for _, _, log in rows), 0.0])
    return np.linalg.lstsq(design, target, rcond=None)[0][:arms].tolist()


def rank(sittings: Sittings, cells: Sequence[Cell], figure: Figure) -> list[tuple[Cell, float]]:
    """The arms and their figures, the best one first."""
    effects = arm_effects(sittings, cells, figure.name)
    sign = -1 if figure.more_is_better else 1
    return [
        (cell, math.exp(effects[cell]))
        for cell in sorted(effects, key=lambda cell: sign * effects[cell])
    ]


def rank_with_lead(
    looked: Looked, cells: Sequence[Cell], figure: Figure
) -> tuple[list[tuple[Cell, float]], RoundContrast | None]:
    """The arms, the best one first, and the lead of the first over the second; None without two.

    The fit uses all sittings, the lead only those that both played. Where arms are missing in some,
    the two may disagree about who is first; then the direct comparison is right.
    """
    ranked = rank(looked.sittings, cells, figure)
    if len(ranked) < 2:
        return ranked, None
    lead = contrast_alone(looked, (ranked[0][0], ranked[1][0]), figure.name)
    if lead.ratio is None or lead.ratio.value == 1:
        return ranked, lead
    if (lead.ratio.value > 1) == figure.more_is_better:
        return ranked, lead
    return [ranked[1], ranked[0], *ranked[2:]], lead.reversed()


def undecided_lead(looked: Looked, cells: Sequence[Cell], figure: Figure) -> frozenset[Cell]:
    """The winner and its runner-up while it is open which of them is first; else nobody.

    In a large group they may both be told from the reference long before.
    """
    sittings = first_sittings(looked.sittings, looked.answered_at)
    _, lead = rank_with_lead(msgspec.structs.replace(looked, sittings=sittings), cells, figure)
    if lead is None or lead.answer != "open":
        return frozenset()
    return frozenset((lead.first, lead.second))
