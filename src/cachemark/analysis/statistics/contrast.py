"""The ratio of a figure of some trials to the same figure of other trials, and its meaning.

Trials of one run are paired by block. A block's trials were played within minutes of each other, so
their common conditions (time of day, neighbours, tape) cancel in the difference of their
logarithms. Trials of two runs are not paired: their ratio has Welch's interval, also on logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.statistics.decision import RatioAnswer, classify_ratio, holm
from cachemark.analysis.statistics.figures import Figure, figures_of
from cachemark.analysis.statistics.interval import (
    Interval,
    geometric_mean,
    paired_ratio,
    unpaired_ratio,
)
from cachemark.analysis.statistics.sample_size import pairs_needed, trials_needed
from cachemark.model.outcome import Outcome

ContrastAnswer = Literal["better", "worse", "equivalent", "inconclusive"]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both sides, the ratio other / baseline, and its meaning.

    `baseline` and `other` are computed from the same trials as the ratio; `counts` are their
    numbers. `why`: the reason if there is no ratio, or no interval. `lost`: only the baseline has
    the figure. `needed`: the number of blocks (or trials of each side) that would narrow the
    interval to the margin, if the variation stays the same.
    """

    figure: str
    baseline: Interval | None = None
    other: Interval | None = None
    counts: tuple[int, int] = (0, 0)
    ratio: Interval | None = None
    p_holm: float | None = None
    answer: ContrastAnswer = "inconclusive"
    needed: int | None = None
    why: str = ""
    lost: bool = False


def paired(
    figure: Figure, baseline: Sequence[Outcome], other: Sequence[Outcome], margin: float
) -> Contrast:
    """Compare valid trials of one run, paired by block."""
    first = {trial.trial.block: trial for trial in baseline}
    second = {trial.trial.block: trial for trial in other}
    blocks = sorted(first.keys() & second.keys())
    if not blocks:
        return Contrast(figure=figure.name, why="no block has a valid trial of both")
    return _contrast(figure, [first[b] for b in blocks], [second[b] for b in blocks], margin, True)


def unpaired(
    figure: Figure, baseline: Sequence[Outcome], other: Sequence[Outcome], margin: float
) -> Contrast:
    """Compare valid trials of two runs."""
    return _contrast(figure, baseline, other, margin, False)


def _contrast(
    figure: Figure,
    baseline: Sequence[Outcome],
    other: Sequence[Outcome],
    margin: float,
    by_block: bool,
) -> Contrast:
    before, after = figures_of(baseline, figure), figures_of(other, figure)
    return contrast_of_values(figure.name, before, after, margin, by_block=by_block)


def contrast_of_values(
    figure: str,
    before: Sequence[float] | None,
    after: Sequence[float] | None,
    margin: float,
    *,
    by_block: bool = False,
) -> Contrast:
    """Compare the figures of trials; None stands for a side on which a trial lacks the figure."""
    if before is None or after is None:
        missing = {(True, True): "either", (True, False): "the first", (False, True): "the second"}
        who = missing[before is None, after is None]
        lost = before is not None
        return Contrast(figure=figure, why=f"some trials of {who} lack it", lost=lost)
    ratio, needed = (
        (paired_ratio(after, before), pairs_needed(after, before, margin))
        if by_block
        else (unpaired_ratio(after, before), trials_needed(after, before, margin))
    )
    return Contrast(
        figure=figure,
        baseline=geometric_mean(before),
        other=geometric_mean(after),
        counts=(len(before), len(after)),
        ratio=ratio,
        needed=needed,
        why="" if ratio.p is not None else "one trial has no interval",
    )


def decide(
    contrasts: Sequence[Contrast], figures: dict[str, Figure], margin: float
) -> list[Contrast]:
    """Add the answers to contrasts; all contrasts are one family, and are corrected together."""
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
            answer=_contrast_answer(
                classify_ratio(contrast.ratio, corrected.get(number), margin),
                figures[contrast.figure].more_is_better,
            )
            if contrast.ratio
            else "inconclusive",
        )
        for number, contrast in enumerate(contrasts)
    ]


def _contrast_answer(found: RatioAnswer, more_is_better: bool) -> ContrastAnswer:
    if found in ("above", "below"):
        return "better" if (found == "above") == more_is_better else "worse"
    return found
