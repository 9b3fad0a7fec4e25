"""One figure of some trials against the same figure of others, and what that says.

Trials of one run are paired by block: a block's trials were played within minutes of each other, so
what they have in common (the hour, the neighbours, the tape) drops out of the difference of their
logarithms. Trials of two runs have nothing that pairs them: Welch's interval, on logarithms too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.statistics.decision import Side, holm, side
from cachemark.analysis.statistics.figures import Figure, figures_of
from cachemark.analysis.statistics.interval import (
    Interval,
    geometric,
    independent_ratio,
    paired_ratio,
)
from cachemark.analysis.statistics.sample_size import pairs_for, trials_for
from cachemark.model.outcome import Outcome

Outlook = Literal["better", "worse", "equivalent", "inconclusive"]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both sides, the ratio other / baseline, and its meaning.

    `baseline` and `other` are of the very trials that the ratio is of; `counts` says how many.
    `why` says why there is no ratio, or no interval of it; `lost`, that only the baseline has it.
    `needed` is how many blocks (or trials a
    side) would make the interval as narrow as the margin, were the next ones to spread as these do.
    """

    figure: str
    baseline: Interval | None = None
    other: Interval | None = None
    counts: tuple[int, int] = (0, 0)
    ratio: Interval | None = None
    p_holm: float | None = None
    answer: Outlook = "inconclusive"
    needed: int | None = None
    why: str = ""
    lost: bool = False


def paired(
    figure: Figure, baseline: Sequence[Outcome], other: Sequence[Outcome], margin: float
) -> Contrast:
    """Valid trials of one run, paired by block."""
    first = {trial.trial.block: trial for trial in baseline}
    second = {trial.trial.block: trial for trial in other}
    blocks = sorted(first.keys() & second.keys())
    if not blocks:
        return Contrast(figure=figure.name, why="no block in which both are valid")
    return _contrast(figure, [first[b] for b in blocks], [second[b] for b in blocks], margin, True)


def unpaired(
    figure: Figure, baseline: Sequence[Outcome], other: Sequence[Outcome], margin: float
) -> Contrast:
    """Valid trials of two runs."""
    return _contrast(figure, baseline, other, margin, False)


def _contrast(
    figure: Figure,
    baseline: Sequence[Outcome],
    other: Sequence[Outcome],
    margin: float,
    by_block: bool,
) -> Contrast:
    before, after = figures_of(baseline, figure), figures_of(other, figure)
    return of_values(figure.name, before, after, margin, by_block=by_block)


def of_values(
    figure: str,
    before: Sequence[float] | None,
    after: Sequence[float] | None,
    margin: float,
    *,
    by_block: bool = False,
) -> Contrast:
    """A contrast of the trials' figures themselves; None where not every trial has it."""
    if before is None or after is None:
        missing = {(True, True): "either", (True, False): "the first", (False, True): "the second"}
        who = missing[before is None, after is None]
        lost = before is not None
        return Contrast(figure=figure, why=f"not every trial of {who} has it", lost=lost)
    ratio, needed = (
        (paired_ratio(after, before), pairs_for(after, before, margin))
        if by_block
        else (independent_ratio(after, before), trials_for(after, before, margin))
    )
    return Contrast(
        figure=figure,
        baseline=geometric(before),
        other=geometric(after),
        counts=(len(before), len(after)),
        ratio=ratio,
        needed=needed,
        why="" if ratio.p is not None else "one trial has no interval",
    )


def decide(
    contrasts: Sequence[Contrast], figures: dict[str, Figure], margin: float
) -> list[Contrast]:
    """The same contrasts with their answers, as one family: all of them are corrected together."""
    p = {
        number: contrast.ratio.p
        for number, contrast in enumerate(contrasts)
        if contrast.ratio is not None and contrast.ratio.p is not None
    }
    corrected = holm(p)
    return [
        msgspec.structs.replace(
            contrast,
            p_holm=corrected.get(number),
            answer=_outlook(
                side(contrast.ratio, corrected.get(number), margin),
                figures[contrast.figure].more_is_better,
            )
            if contrast.ratio
            else "inconclusive",
        )
        for number, contrast in enumerate(contrasts)
    ]


def _outlook(found: Side, more_is_better: bool) -> Outlook:
    if found in ("above", "below"):
        return "better" if (found == "above") == more_is_better else "worse"
    return found
