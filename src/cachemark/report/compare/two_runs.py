"""Comparison of runs, cell by cell: one run or several on each side."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.rounds.family import decide
from cachemark.analysis.rounds.looks import StopRule, needed
from cachemark.analysis.rounds.pairs import COMPARED_FIGURES
from cachemark.analysis.rounds.ranking import cell_figure
from cachemark.analysis.statistics import Comparison, Interval, absolute_figure
from cachemark.analysis.stored_runs import RunsEstimate, compare_run_values, run_value
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import repetition_of
from cachemark.model.run_header import RunHeader
from cachemark.model.work_identity import changed_settings, definition
from cachemark.report.compare.differences import differences, machines_differ
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.compare.pairs import (
    Pair,
    Runs,
    count_tests,
    missing_figures,
    notes,
    reason_lines,
    rows_of,
)
from cachemark.report.compare.selection import (
    CellFilter,
    figures_for,
    rejection_reason,
    sort_key,
    trials_by_cell,
    valid_trials,
)

# The trials of each run of a cell, and when the run began.
_CellRuns = list[tuple[str, list[Outcome]]]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one side: their headers, and the outcomes of each."""

    headers: list[RunHeader]
    outcomes: list[Sequence[Outcome]]

    @property
    def name(self) -> str:
        """The ids of the runs, with what users call them."""
        return ", ".join(f"{of.id} ({of.name})" if of.name else of.id for of in self.headers)


def compare_runs(
    baseline: Side, other: Side, wanted: CellFilter, figures: Sequence[str], margin_percent: float
) -> ComparisonReport:
    """Compare the other runs with the baseline, each cell with the one of the same name.

    Raises UsageError if they have no common cell.
    """
    first, second = (_trials_of_runs(side) for side in (baseline, other))
    wanted.check([*first, *second], f"{baseline.name} or {other.name}")
    cells = sorted(filter(wanted.has, first.keys() | second.keys()), key=sort_key)
    same_names = [(cell, cell) for cell in cells]
    return compare_sides(baseline, other, same_names, figures, margin_percent)


def compare_sides(
    baseline: Side,
    other: Side,
    cells: Sequence[tuple[Cell, Cell]],
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare pairs of cells: one of the baseline, one of the other side. Raises UsageError."""
    first, second = (_trials_of_runs(side) for side in (baseline, other))
    names = baseline.name, other.name
    pairs: list[Pair] = []
    lost: list[tuple[Cell, str]] = []
    left_out: list[tuple[Cell, str]] = []
    for ours, theirs in cells:
        before, after = first.get(ours, []), second.get(theirs, [])
        reason = _incomparable_reason(_flat(before), _flat(after), names)
        if valid_trials(_flat(before)) and _flat(after) and not valid_trials(_flat(after)):
            lost.append((theirs, rejection_reason(_flat(after))))
        elif reason:
            left_out.append((theirs if valid_trials(_flat(before)) else ours, reason))
        else:
            pairs.append(_pair((ours, theirs), before, after))
    if not pairs and not lost:
        reasons = [*reason_lines(left_out), "cachemark history lists the runs and their cells"]
        raise UsageError(f"{names[0]} and {names[1]} have no cell to compare", reasons[0])
    # A comparison of runs is one look, however often each run looked at its sittings.
    rule = StopRule(margin=margin_percent / 100, looks=(), unit="pair of runs")
    rows = _rows(pairs, figures, rule)
    headers = baseline.headers[0], other.headers[0]
    return ComparisonReport(
        baseline=names[0],
        other=names[1],
        paired=False,
        margin_percent=margin_percent,
        level=rule.level,
        tests=count_tests(rows),
        rows=rows,
        lost=reason_lines([*missing_figures(rows, lost=True), *lost]),
        lost_cells=[cell for cell, _ in lost],
        left_out=reason_lines([*missing_figures(rows, lost=False), *left_out]),
        left_out_cells=[cell for cell, _ in left_out],
        differences=differences(headers, pairs),
        notes=[*_machine_note(headers), *notes(rows, pairs)],
    )


def _machine_note(headers: tuple[RunHeader, RunHeader]) -> list[str]:
    if not machines_differ(headers[0].host, headers[1].host):
        return []
    return ["the machines differ, and each ratio includes this difference"]


def _trials_of_runs(side: Side) -> dict[Cell, _CellRuns]:
    """Cell → the trials of each run that has the cell, with the time at which the run began.

    The repetition's trials come last.
    """
    by_cell: dict[Cell, _CellRuns] = {}
    for header, outcomes in zip(side.headers, side.outcomes, strict=True):
        for cell, trials in trials_by_cell(outcomes).items():
            again = [of for of in outcomes if of.trial.cell == repetition_of(cell)]
            by_cell.setdefault(cell, []).append((header.created_at, [*trials, *again]))
    return by_cell


def _rows(pairs: Sequence[Pair], names: Sequence[str], rule: StopRule) -> list[ComparisonRow]:
    """One row for each pair; the tests of a figure are a family."""
    wanted = [[of.name for of in figures_for(names, pair.trials)] for pair in pairs]
    by_figure: dict[str, dict[int, Comparison]] = {}
    for name in dict.fromkeys(name for of_pair in wanted for name in of_pair):
        found = {
            number: _estimate(pair, name)
            for number, pair in enumerate(pairs)
            if name in wanted[number]
        }
        by_figure[name] = _compared(pairs, found, name, rule)
    return rows_of(pairs, by_figure)


def _estimate(pair: Pair, name: str) -> RunsEstimate:
    after, before = (
        [run_value(at, run, cell, name) for at, run in zip(began, runs, strict=True)]
        for cell, began, runs in (
            (pair.other, pair.after_began, pair.after),
            (pair.baseline, pair.before_began, pair.before),
        )
    )
    return compare_run_values(after, before)


def _compared(
    pairs: Sequence[Pair], found: dict[int, RunsEstimate], name: str, rule: StopRule
) -> dict[int, Comparison]:
    """The comparisons by one figure. Only those with an interval are tests; the others have no
    answer."""
    more_is_better = COMPARED_FIGURES[name].more_is_better
    tested = {number: of.estimate for number, of in found.items() if of.pairs and of.estimate}
    decisions = decide(tested, rule, more_is_better=more_is_better)
    compared: dict[int, Comparison] = {}
    for number, of in found.items():
        decision, pair = decisions.get(number), pairs[number]
        plain = Comparison(
            figure=name,
            first=pair.other,
            second=pair.baseline,
            ratio=of.estimate.ratio(rule.confidence) if of.estimate else None,
            unit="pair of runs" if of.pairs else "run",
            counts=(len(pair.after), len(pair.before)),
            first_value=_own(pair.after, pair.other, name) if of.estimate else None,
            second_value=_own(pair.before, pair.baseline, name) if of.estimate else None,
            tested=decision is not None,
            lost=of.lost,
            why=of.why,
        )
        if of.estimate is None or decision is None:
            compared[number] = plain
            continue
        is_open = decision.answer == "open"
        compared[number] = msgspec.structs.replace(
            plain,
            answer=decision.answer,
            p_holm=decision.p_holm,
            spread=of.estimate.spread,
            one_tells_most=of.estimate.one_tells_most,
            needed=needed(of.estimate, rule, len(tested)) if is_open else None,
        )
    return compared


def _own(runs: Runs, cell: Cell, name: str) -> Interval | None:
    """A side's own figure: over its runs, or over the trials of its only run."""
    if len(runs) == 1:
        return cell_figure(runs[0], cell, name)
    values = [run_value("", run, cell, name).value for run in runs]
    known = [value for value in values if value]
    return absolute_figure(known) if len(known) == len(values) else None


def _flat(runs: _CellRuns) -> list[Outcome]:
    return [trial for _, run in runs for trial in run]


def _pair(cells: tuple[Cell, Cell], before: _CellRuns, after: _CellRuns) -> Pair:
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
    before: list[Outcome], after: list[Outcome], names: tuple[str, str]
) -> str:
    """The reason why a cell of two runs cannot be compared; empty if it can."""
    if not valid_trials(before) and not valid_trials(after):
        return f"no valid trial: {rejection_reason(after or before)}"
    for name, trials in zip(names, (before, after), strict=True):
        if not valid_trials(trials):
            return f"no valid trial in {name}: {rejection_reason(trials)}"
    changed = changed_settings(definition(before[0]), definition(after[0]))
    return f"the work differs: {'; '.join(changed)}" if changed else ""
