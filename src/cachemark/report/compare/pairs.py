"""The rows of a comparison, a family of tests for each figure, and the notes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from cachemark.analysis.statistics import (
    ALPHA,
    FIGURES,
    MAX_TRIALS,
    MIN_RUNS,
    Contrast,
    Figure,
    Tests,
    decide,
)
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import uses_rounds
from cachemark.report.cells import CELL_FIELDS, cell_title
from cachemark.report.compare.model import ComparisonRow
from cachemark.report.compare.selection import figures_for
from cachemark.runs.next_trials.questions import stop_rule

Runs = Sequence[Sequence[Outcome]]
Contraster = Callable[[Figure, Runs, Runs, float, Tests], Contrast]
_FEW = 5


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two cells to compare, with their valid trials of each run."""

    baseline: Cell
    other: Cell
    before: list[list[Outcome]]
    after: list[list[Outcome]]

    @property
    def trials(self) -> list[Outcome]:
        """The trials of both sides."""
        return [trial for run in (*self.before, *self.after) for trial in run]


def decided_rows(
    pairs: Sequence[Pair],
    names: Sequence[str],
    margin_percent: float,
    contrast: Contraster,
    level: float,
) -> list[ComparisonRow]:
    """One row for each pair; the tests of each figure form a family."""
    margin = margin_percent / 100
    figures = [figures_for(names, pair.trials) for pair in pairs]
    tests = Counter(figure.name for of_pair in figures for figure in of_pair)
    raw = [
        [
            contrast(
                figure,
                pair.before,
                pair.after,
                margin,
                Tests(count=tests[figure.name], level=level),
            )
            for figure in of_pair
        ]
        for pair, of_pair in zip(pairs, figures, strict=True)
    ]
    flat = iter(decide([one for row in raw for one in row], FIGURES, margin, level))
    return [
        ComparisonRow(baseline=pair.baseline, other=pair.other, contrasts=[next(flat) for _ in row])
        for pair, row in zip(pairs, raw, strict=True)
    ]


def level_of(experiments: Iterable[Experiment]) -> float:
    """The level of each test: that of the looks of a run in rounds, which are several."""
    return min(stop_rule(one).level if uses_rounds(one) else ALPHA for one in experiments)


def count_tests(rows: Sequence[ComparisonRow]) -> int:
    """The number of tests in the largest family. What has too few runs is no test."""
    tested = (c.figure for row in rows for c in row.contrasts if c.p_holm is not None)
    return max(Counter(tested).values(), default=0)


def missing_figures(rows: Sequence[ComparisonRow], *, lost: bool) -> list[tuple[Cell, str]]:
    """Missing figures with the reason: with `lost`, those that only the baseline has."""
    return [
        (row.other, f"{FIGURES[contrast.figure].title}: {contrast.why}")
        for row in rows
        for contrast in row.contrasts
        if contrast.ratio is None and contrast.lost == lost
    ]


def reason_lines(excluded: Sequence[tuple[Cell, str]]) -> list[str]:
    """One line for each reason; several cells are named by what they have in common."""
    reasons: dict[str, list[Cell]] = {}
    for cell, reason in excluded:
        reasons.setdefault(reason, []).append(cell)
    return [f"{_several(cells)}: {reason}" for reason, cells in reasons.items()]


def _several(cells: list[Cell]) -> str:
    if len(cells) == 1:
        return cell_title(cells[0])
    common = [
        getattr(cells[0], field)
        for field in CELL_FIELDS
        if len({getattr(cell, field) for cell in cells}) == 1
    ]
    return " · ".join([*common, f"{len(cells)} cells"])


def notes(rows: Sequence[ComparisonRow], pairs: Sequence[Pair], *, paired: bool) -> list[str]:
    """Notes: few trials, changed numbers of failures, and how many trials would be enough."""
    lines: list[str] = []
    unit = "blocks" if paired else "runs on each side"
    counts = [min(c.counts) for row in rows for c in row.contrasts if c.ratio]
    if any(c.too_few_runs for row in rows for c in row.contrasts):
        lines.append(
            "no answer: the trials of one run share its state, so runs differ by more than their "
            "trials show. Play both sides in one run (its cells are paired by block), or compare "
            f"{MIN_RUNS} runs or more on each side (--with)"
        )
    elif counts and min(counts) < _FEW:
        lines.append(
            f"{min(counts)} {unit} are few: use {_FEW} or more for figures that you publish"
        )
    lines += [note for pair in pairs for note in _failures(pair)]
    unclear = [
        (contrast.needed, FIGURES[contrast.figure].title, row)
        for row in rows
        for contrast in row.contrasts
        if contrast.answer == "inconclusive" and contrast.ratio and not contrast.too_few_runs
    ]
    known = [(needed, what, row) for needed, what, row in unclear if needed]
    if known:
        needed, what, row = max(known, key=lambda each: each[0])
        lines.append(
            f"with the same variation, about {needed} {unit} would probably settle {what} of "
            f"{cell_title(row.other)}"
        )
    if len(known) < len(unclear):
        lines.append(
            f"{len(unclear) - len(known)} of the ratios vary too much for an answer even with "
            f"{MAX_TRIALS} {unit} (`cachemark doctor` may show the reason)"
        )
    return lines


def _failures(pair: Pair) -> list[str]:
    before, after = _failed(pair.before), _failed(pair.after)
    if bool(before) == bool(after):
        return []
    return [f"failed operations of {cell_title(pair.other)}: {before} → {after}"]


def _failed(runs: Runs) -> int:
    trials = [trial for run in runs for trial in run]
    operations = [op for t in trials if t.measure for op in t.measure.operations.values()]
    return sum(operation.attempts - operation.ok for operation in operations)
