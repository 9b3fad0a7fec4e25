"""The pairs of a comparison: which can be compared, a family of tests for each figure, notes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import counted, hidden_by
from cachemark.analysis.rounds.looks import MAX_SITTINGS, StopRule
from cachemark.analysis.statistics import FIGURES, Comparison, evictions
from cachemark.analysis.stored_runs import MIN_RUNS, NOT_IN_TURNS
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.work_identity import changed_settings, definition
from cachemark.report.cells import CELL_FIELDS, cell_title
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.compare.selection import figures_for, rejection_reason, valid_trials

Runs = Sequence[Sequence[Outcome]]
# The trials of each run of a cell, and when the run began.
CellRuns = Sequence[tuple[str, Sequence[Outcome]]]
_Reasons = list[tuple[Cell, str]]
_FEW = 5


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two cells to compare, with their valid trials of each run, and when each run began."""

    baseline: Cell
    other: Cell
    before: list[list[Outcome]]
    after: list[list[Outcome]]
    before_began: list[str] = []
    after_began: list[str] = []

    @property
    def trials(self) -> list[Outcome]:
        """The trials of both sides."""
        return [trial for run in (*self.before, *self.after) for trial in run]


class SortedCells(msgspec.Struct, frozen=True, kw_only=True):
    """The pairs of cells that can be compared, and the other cells, each with the reason.

    `lost`: they have valid trials in the baseline only.
    """

    pairs: list[Pair]
    lost: _Reasons
    left_out: _Reasons


def sort_out(
    cells: Iterable[tuple[Cell, Cell]],
    played: tuple[Mapping[Cell, CellRuns], Mapping[Cell, CellRuns]],
    names: tuple[str, str] | None,
) -> SortedCells:
    """Sort pairs of cells of two sides, which have these names; None: both are of one run.

    Cells of two sides are compared if their work is the same.
    """
    found = SortedCells(pairs=[], lost=[], left_out=[])
    for both in cells:
        runs = played[0].get(both[0], ()), played[1].get(both[1], ())
        before, after = ([trial for _, run in side for trial in run] for side in runs)
        known = bool(valid_trials(before)), bool(valid_trials(after))
        if known[0] and after and not known[1]:
            found.lost.append((both[1], rejection_reason(after)))
        elif reason := _incomparable_reason(before, after, names):
            found.left_out.append((both[known[0]], reason))
        else:
            found.pairs.append(_pair(both, *runs))
    return found


def _pair(cells: tuple[Cell, Cell], before: CellRuns, after: CellRuns) -> Pair:
    first, second = (
        [(at, valid) for at, run in side if (valid := valid_trials(run))]
        for side in (before, after)
    )
    return Pair(
        baseline=cells[0],
        other=cells[1],
        before=[run for _, run in first],
        after=[run for _, run in second],
        before_began=[at for at, _ in first],
        after_began=[at for at, _ in second],
    )


def _incomparable_reason(
    before: list[Outcome], after: list[Outcome], names: tuple[str, str] | None
) -> str:
    """The reason why two cells cannot be compared; empty if they can."""
    if not valid_trials(before) and not valid_trials(after):
        return f"no valid trial: {rejection_reason(after or before)}"
    for number, trials in enumerate((before, after)):
        if not valid_trials(trials):
            where = f" in {names[number]}" if names else ""
            return f"no valid trial{where}: {rejection_reason(trials)}"
    if names is None:
        return ""
    changed = changed_settings(definition(before[0]), definition(after[0]))
    return f"the work differs: {'; '.join(changed)}" if changed else ""


def pairs_by_figure(found: SortedCells, figures: Sequence[str]) -> dict[str, dict[int, Pair]]:
    """The pairs that have each figure, by their numbers."""
    by_figure: dict[str, dict[int, Pair]] = {}
    for number, pair in enumerate(found.pairs):
        for of in figures_for(figures, pair.trials):
            by_figure.setdefault(of.name, {})[number] = pair
    return by_figure


def rows_of(
    found: SortedCells, by_figure: Mapping[str, Mapping[int, Comparison]]
) -> list[ComparisonRow]:
    """One row for each pair; `by_figure` has the comparisons by the number of the pair."""
    return [
        ComparisonRow(
            baseline=pair.baseline,
            other=pair.other,
            comparisons=[of[number] for of in by_figure.values() if number in of],
        )
        for number, pair in enumerate(found.pairs)
    ]


def report_of(
    names: tuple[str, str],
    found: SortedCells,
    rows: Sequence[ComparisonRow],
    rule: StopRule,
    margin_percent: float,
    *,
    differences: Sequence[str] | None = None,
    more_notes: Sequence[str] = (),
) -> ComparisonReport:
    """The comparison of two sides with these names; without `differences`, of parts of one run."""
    return ComparisonReport(
        baseline=names[0],
        other=names[1],
        paired=differences is None,
        margin_percent=margin_percent,
        level=rule.level,
        tests=count_tests(rows),
        rows=list(rows),
        lost=reason_lines([*_missing_figures(rows, lost=True), *found.lost]),
        lost_cells=[cell for cell, _ in found.lost],
        left_out=reason_lines([*_missing_figures(rows, lost=False), *found.left_out]),
        left_out_cells=[cell for cell, _ in found.left_out],
        differences=list(differences or ()),
        notes=[*more_notes, *_notes(rows, found.pairs)],
    )


def count_tests(rows: Sequence[ComparisonRow]) -> int:
    """The number of tests in the largest family. A ratio that gets no answer is no test."""
    tested = (c.figure for row in rows for c in row.comparisons if c.p_holm is not None)
    return max(Counter(tested).values(), default=0)


def _missing_figures(rows: Sequence[ComparisonRow], *, lost: bool) -> _Reasons:
    """Missing figures, each with its reason; with `lost`, only the baseline has them."""
    return [
        (row.other, f"{FIGURES[of.figure].title}: {of.why}")
        for row in rows
        for of in row.comparisons
        if of.ratio is None and of.lost == lost
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


def _notes(rows: Sequence[ComparisonRow], pairs: Sequence[Pair]) -> list[str]:
    shown = [(row, of) for row in rows for of in row.comparisons if of.ratio]
    lines = [*_untested(shown), *_few(shown)]
    few = dict.fromkeys(of.why for _, of in shown if of.scope == "within" and of.why)
    lines += [f"no answer within {reason}" for reason in few]
    lines += [note for pair in pairs for note in (*_failures(pair), *_evictions(pair))]
    return [*lines, *_single(shown), *_unclear(shown)]


def _untested(shown: list[tuple[ComparisonRow, Comparison]]) -> list[str]:
    reasons = {of.why for _, of in shown if not of.tested}
    if NOT_IN_TURNS in reasons:
        return [
            f"no answer: {NOT_IN_TURNS}. A machine is faster on some days than on others, so it "
            "cannot be told from what was changed. Play base and head one after the other, "
            f"{MIN_RUNS} times or more, or both in one run (`cachemark compare --play`)"
        ]
    if reasons:
        return [
            "no answer: the trials of one run share its state, so runs differ by more than their "
            "trials show. Play both sides in one run (its cells are paired by block), or compare "
            f"{MIN_RUNS} runs or more on each side (--with), played in turns"
        ]
    return []


def _few(shown: list[tuple[ComparisonRow, Comparison]]) -> list[str]:
    tested = [of for _, of in shown if of.tested]
    fewest = min(tested, key=lambda of: of.count, default=None)
    if fewest is None or fewest.count >= _FEW:
        return []
    what = _units(fewest.count, fewest)
    are = "is" if fewest.count == 1 else "are"
    return [f"{what} {are} few: use {_FEW} or more for figures that you publish"]


def _units(count: int, of: Comparison) -> str:
    plural = {"pair of runs": "pairs of runs"}.get(of.unit, f"{of.unit}s")
    return f"{count} {of.unit if count == 1 else plural}"


def _single(shown: list[tuple[ComparisonRow, Comparison]]) -> list[str]:
    """Comparisons whose variance is mostly that of one sitting, block or pair of runs."""
    return [
        f"{FIGURES[of.figure].title} of {cell_title(row.other)}: one {of.unit} makes more than "
        f"half of the variance ({of.spread[0]:.3f} to {of.spread[1]:.3f}); if such ones are rare, "
        "the interval holds less often than it says"
        for row, of in shown
        if of.one_tells_most and of.spread
    ]


def _unclear(shown: list[tuple[ComparisonRow, Comparison]]) -> list[str]:
    tested = [(row, of) for row, of in shown if of.tested and of.scope == "over"]
    unclear = [(row, of) for row, of in tested if of.answer == "open"]
    known = [(row, of) for row, of in unclear if of.needed]
    within = [(row, of) for row, of in unclear if of.within_own_error]
    lines = [
        f"{FIGURES[of.figure].title} of {cell_title(row.other)}: {hidden_by(of.bound)} "
        "are within the instrument's own error (A/A test, halves of slices)"
        for row, of in within
    ]
    if known:
        row, of = max(known, key=lambda each: each[1].needed or 0)
        lines.append(
            f"with the same variation, about {_units(of.needed or 0, of)} would probably settle "
            f"{FIGURES[of.figure].title} of {cell_title(row.other)}, unless the truth is near the "
            "margin"
        )
    if others := len(unclear) - len(known) - len(within):
        _, of = unclear[0]
        lines.append(
            f"{others} of the ratios vary too much for an answer even with "
            f"{_units(MAX_SITTINGS, of)} (`cachemark doctor` may show the reason)"
        )
    return lines


def _failures(pair: Pair) -> list[str]:
    before, after = _failed(pair.before), _failed(pair.after)
    if bool(before) == bool(after):
        return []
    return [f"failed operations of {cell_title(pair.other)}: {before} → {after}"]


def _evictions(pair: Pair) -> list[str]:
    of = [evictions([trial for run in side for trial in run]) for side in (pair.before, pair.after)]
    texts = ["not known" if count is None else counted(count) for count in of]
    return [f"evictions of {cell_title(pair.other)}: {' → '.join(texts)}"] if any(of) else []


def _failed(runs: Runs) -> int:
    trials = [trial for run in runs for trial in run]
    operations = [op for t in trials if t.measure for op in t.measure.operations.values()]
    return sum(operation.attempts - operation.ok for operation in operations)
