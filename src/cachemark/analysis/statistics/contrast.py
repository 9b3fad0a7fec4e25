"""The ratio of a figure of some trials to the same figure of other trials, and its meaning.

Trials of one run are paired by block. A block's trials were played within minutes of each other, so
their common conditions (time of day, neighbours, tape) cancel in the difference of their
logarithms.

Trials of different runs are not paired, and trials of one run are not independent of each other:
they share the run's state (memory layout, neighbours, temperature). So each run has one value, the
geometric mean of its trials, and the ratio has Welch's interval over runs, also on logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from cachemark.analysis.statistics.decision import (
    ALPHA,
    ONE_TEST,
    RatioAnswer,
    Tests,
    classify_ratio,
    holm,
)
from cachemark.analysis.statistics.figures import Figure, figures_of, resolution_of, showing
from cachemark.analysis.statistics.interval import (
    Interval,
    absolute_figure,
    geometric_mean,
    paired_ratio,
    unpaired_ratio,
)
from cachemark.analysis.statistics.sample_size import pairs_needed, trials_needed
from cachemark.model.outcome import Outcome

ContrastAnswer = Literal["better", "worse", "equivalent", "inconclusive"]
# With fewer runs on a side, two sets of runs get no answer.
MIN_RUNS = 4


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both sides, the ratio other / baseline, and its meaning.

    - `baseline` and `other` are computed from the same blocks (or runs) as the ratio; `counts` are
      their numbers.
    - `corrected` is the interval that holds for all tests of the family together (Bonferroni), with
      the confidence 1 − level / tests. A ratio that is not significant after Holm's correction has
      1 in it. It is present only where the correction changes the answer.
    - `why`: the reason if there is no ratio, no interval, or no answer.
    - `lost`: only the baseline has the figure.
    - `needed`: the number of blocks (or runs on each side) that would probably settle it
      (sample_size.py).
    - `too_few_runs`: there are too few runs for an answer.
    """

    figure: str
    baseline: Interval | None = None
    other: Interval | None = None
    counts: tuple[int, int] = (0, 0)
    ratio: Interval | None = None
    corrected: Interval | None = None
    p_holm: float | None = None
    answer: ContrastAnswer = "inconclusive"
    needed: int | None = None
    why: str = ""
    lost: bool = False
    too_few_runs: bool = False


def paired(
    figure: Figure,
    baseline: Sequence[Outcome],
    other: Sequence[Outcome],
    margin: float,
    tests: Tests = ONE_TEST,
) -> Contrast:
    """Compare valid trials of one run, paired by block, in a family of tests."""
    first = {trial.trial.block: trial for trial in showing(baseline, figure)}
    second = {trial.trial.block: trial for trial in showing(other, figure)}
    blocks = sorted(first.keys() & second.keys())
    if not blocks:
        return Contrast(figure=figure.name, why="no block has a valid trial of both")
    before, after = [first[b] for b in blocks], [second[b] for b in blocks]
    first_values, second_values = figures_of(before, figure), figures_of(after, figure)
    if first_values is None or second_values is None:
        return _missing(figure.name, first_values, second_values)
    resolution = max(resolution_of(before, figure), resolution_of(after, figure))
    ratio, corrected = (
        paired_ratio(second_values, first_values, resolution, confidence)
        for confidence in (tests.confidence, tests.family_confidence)
    )
    return Contrast(
        figure=figure.name,
        baseline=absolute_figure(first_values),
        other=absolute_figure(second_values),
        counts=(len(blocks), len(blocks)),
        ratio=ratio,
        corrected=corrected,
        needed=pairs_needed(second_values, first_values, margin, tests.count, level=tests.level),
        why="" if ratio.p is not None else "one trial has no interval",
    )


def unpaired(
    figure: Figure,
    baseline: Sequence[Sequence[Outcome]],
    other: Sequence[Sequence[Outcome]],
    margin: float,
    tests: Tests = ONE_TEST,
) -> Contrast:
    """Compare the runs of two sides; each run has its valid trials of one cell."""
    before, after = (
        [figures_of(showing(run, figure), figure) for run in side] for side in (baseline, other)
    )
    return contrast_of_runs(figure.name, before, after, margin, tests)


def contrast_of_runs(
    figure: str,
    baseline: Sequence[Sequence[float] | None],
    other: Sequence[Sequence[float] | None],
    margin: float,
    tests: Tests = ONE_TEST,
) -> Contrast:
    """Compare two sides by a value for each run; None stands for a run that lacks the figure."""
    before, after = (_run_values(side) for side in (baseline, other))
    if before is None or after is None:
        return _missing(figure, before, after)
    contrast = Contrast(
        figure=figure,
        baseline=_of_side(baseline, before),
        other=_of_side(other, after),
        counts=(len(before), len(after)),
        ratio=unpaired_ratio(after, before, confidence=tests.confidence),
        corrected=unpaired_ratio(after, before, confidence=tests.family_confidence),
    )
    if min(contrast.counts) >= MIN_RUNS:
        needed = trials_needed(after, before, margin, tests.count, level=tests.level)
        return msgspec.structs.replace(contrast, needed=needed)
    why = f"an answer needs {MIN_RUNS} runs on each side"
    return msgspec.structs.replace(contrast, why=why, too_few_runs=True)


def _run_values(runs: Sequence[Sequence[float] | None]) -> list[float] | None:
    """The geometric mean of each run's trials; None if some run does not have the figure."""
    values = [geometric_mean(trials).value for trials in runs if trials]
    return values if values and len(values) == len(runs) else None


def _of_side(runs: Sequence[Sequence[float] | None], values: Sequence[float]) -> Interval:
    """A side's own figure: over its runs, or over the trials of its only run."""
    only = runs[0] if len(runs) == 1 else None
    return absolute_figure(only or values)


def _missing(
    figure: str, before: Sequence[float] | None, after: Sequence[float] | None
) -> Contrast:
    missing = {(True, True): "either", (True, False): "the first", (False, True): "the second"}
    who = missing[before is None, after is None]
    return Contrast(figure=figure, why=f"some trials of {who} lack it", lost=before is not None)


def decide(
    contrasts: Sequence[Contrast],
    figures: Mapping[str, Figure],
    margin: float,
    level: float = ALPHA,
) -> list[Contrast]:
    """Add the answers. The contrasts of each figure are one family, and are corrected together.

    `level` is that of the contrasts' intervals: stricter than ALPHA for runs that were looked at
    more than once.

    Families are apart because a figure that is tested must not be judged more leniently if others
    are shown beside it. A contrast with too few runs is no test, and gets no answer.
    """
    families: dict[str, dict[int, float]] = {}
    for number, of in enumerate(contrasts):
        if of.ratio is not None and of.ratio.p is not None and not of.too_few_runs:
            families.setdefault(of.figure, {})[number] = of.ratio.p
    corrected = {number: p for family in families.values() for number, p in holm(family).items()}
    return [
        _decided(of, corrected.get(number), figures[of.figure], margin, level)
        for number, of in enumerate(contrasts)
    ]


def _decided(
    contrast: Contrast, p_holm: float | None, figure: Figure, margin: float, level: float
) -> Contrast:
    if contrast.ratio is None:
        return contrast
    answer = classify_ratio(contrast.ratio, p_holm, margin, level)
    alone = classify_ratio(contrast.ratio, contrast.ratio.p, margin, level)
    return msgspec.structs.replace(
        contrast,
        p_holm=p_holm,
        answer=_contrast_answer(answer, figure.more_is_better),
        corrected=contrast.corrected if p_holm is not None and answer != alone else None,
    )


def _contrast_answer(side: RatioAnswer, more_is_better: bool) -> ContrastAnswer:
    if side in ("above", "below"):
        return "better" if (side == "above") == more_is_better else "worse"
    return side
