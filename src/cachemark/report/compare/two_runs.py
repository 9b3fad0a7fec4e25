"""Comparison of runs, cell by cell: one run or several on each side."""

from collections.abc import Mapping, Sequence

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
from cachemark.report.compare.differences import differences, machines_differ
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.pairs import (
    Pair,
    Runs,
    pairs_by_figure,
    reason_lines,
    report_of,
    rows_of,
    sort_out,
)
from cachemark.report.compare.selection import CellFilter, sort_key, trials_by_cell


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
    names = baseline.name, other.name
    found = sort_out(cells, (_trials_of_runs(baseline), _trials_of_runs(other)), names)
    if not found.pairs and not found.lost:
        raise UsageError(
            f"{names[0]} and {names[1]} have no cell to compare",
            next(iter(reason_lines(found.left_out)), "cachemark history lists all cells of runs"),
        )
    # A comparison of runs is one look, however often each run looked at its sittings.
    rule = StopRule(margin=margin_percent / 100, looks=(), unit="pair of runs")
    headers = baseline.headers[0], other.headers[0]
    by_figure = pairs_by_figure(found, figures)
    compared = {name: _compared(pairs, name, rule) for name, pairs in by_figure.items()}
    return report_of(
        names,
        found,
        rows_of(found, compared),
        rule,
        margin_percent,
        differences=differences(headers, found.pairs),
        more_notes=_machine_note(headers),
    )


def _machine_note(headers: tuple[RunHeader, RunHeader]) -> list[str]:
    if not machines_differ(headers[0].host, headers[1].host):
        return []
    return ["the machines differ, and each ratio includes this difference"]


def _trials_of_runs(side: Side) -> dict[Cell, list[tuple[str, list[Outcome]]]]:
    """Cell → the trials of each run that has the cell, with the time at which the run began.

    The repetition's trials come last.
    """
    by_cell: dict[Cell, list[tuple[str, list[Outcome]]]] = {}
    for header, outcomes in zip(side.headers, side.outcomes, strict=True):
        for cell, trials in trials_by_cell(outcomes).items():
            again = [of for of in outcomes if of.trial.cell == repetition_of(cell)]
            by_cell.setdefault(cell, []).append((header.created_at, [*trials, *again]))
    return by_cell


def _estimate(pair: Pair, name: str) -> RunsEstimate:
    after, before = (
        [run_value(at, run, cell, name) for at, run in zip(began, runs, strict=True)]
        for cell, began, runs in (
            (pair.other, pair.after_began, pair.after),
            (pair.baseline, pair.before_began, pair.before),
        )
    )
    return compare_run_values(after, before)


def _compared(pairs: Mapping[int, Pair], name: str, rule: StopRule) -> dict[int, Comparison]:
    """The comparisons by one figure. Only those with an interval are tests; the others have no
    answer."""
    found = {number: _estimate(pair, name) for number, pair in pairs.items()}
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
