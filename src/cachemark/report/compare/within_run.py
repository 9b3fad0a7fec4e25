"""Comparison of clients, servers or loads of one run, paired by block."""

from collections.abc import Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import count_of
from cachemark.analysis.rounds.comparing import (
    Looked,
    compare_pairs,
    decide_pairs,
    look,
    own_errors,
    with_family_interval,
)
from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.questions import Question, asked, stop_rule
from cachemark.analysis.statistics import Comparison
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Outcome
from cachemark.model.plan import cells as experiment_cells
from cachemark.model.run_header import RunHeader
from cachemark.report.compare.in_turns import with_values
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.pairs import (
    Pair,
    pairs_by_figure,
    reason_lines,
    report_of,
    rows_of,
    sort_out,
)
from cachemark.report.compare.selection import CellFilter, counterparts, trials_by_cell

# Workloads are not: an operation of one is not an operation of the other.
FACTORS = ("client", "server", "load")


def compare_within_run(
    header: RunHeader,
    outcomes: Sequence[Outcome],
    wanted: CellFilter,
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare every other name with the first one. Raises UsageError if nothing can be paired."""
    played = trials_by_cell(outcomes)
    factor = factor_of(wanted)
    baseline, *others = getattr(wanted, factor)
    wanted.check(played, header.id)
    first, *seconds = (CellFilter(**{factor: (name,)}) for name in (baseline, *others))
    cells = [
        both
        for cell in filter(wanted.has, played)
        for second in seconds
        for both in counterparts(first, second, [cell], played)
    ]
    runs = {cell: [("", trials)] for cell, trials in played.items()}
    found = sort_out(cells, (runs, runs), None)
    if not found.pairs and not found.lost:
        raise UsageError(
            f"{header.id}: no cell of {baseline} can be compared with one of {', '.join(others)}",
            next(iter(reason_lines(found.left_out)), ""),
        )
    rule = msgspec.structs.replace(stop_rule(header.experiment), margin=margin_percent / 100)
    by_figure = pairs_by_figure(found, figures)
    looked = look(read_sittings(outcomes, list(by_figure)), rule, final=True)
    measured = {outcome.trial.cell for outcome in outcomes if outcome.measure is not None}
    experiment = header.experiment
    questions = asked(experiment, [of for of in experiment_cells(experiment) if of in measured])
    compared = {
        name: _compared(looked, questions, outcomes, name, pairs)
        for name, pairs in by_figure.items()
    }
    names = baseline, others[0] if len(others) == 1 else ""
    return report_of(names, found, rows_of(found, compared), rule, margin_percent)


def _compared(
    looked: Looked,
    questions: Sequence[Question],
    outcomes: Sequence[Outcome],
    name: str,
    pairs: Mapping[int, Pair],
) -> dict[int, Comparison]:
    """The comparisons of the run's own report, in families of what is compared here."""
    both = {number: (pair.other, pair.baseline) for number, pair in pairs.items()}
    errors = own_errors(looked, questions, name)
    bounds = {pair: errors.of(pair) for pair in both.values()}
    compared = compare_pairs(looked, decide_pairs(looked, bounds, name), name, len(bounds))
    return {
        number: _told(with_values(compared[pair], outcomes), looked, len(bounds))
        for number, pair in both.items()
    }


def _told(of: Comparison, looked: Looked, tests: int) -> Comparison:
    """Add the reason for a missing answer, and mark where the correction decides."""
    if of.ratio is not None and of.scope == "within":
        least = count_of(looked.rule.first, of.unit)
        return msgspec.structs.replace(of, why=f"{count_of(of.count, of.unit)}: {least} are needed")
    return with_family_interval(looked, of, tests)


def factor_of(wanted: CellFilter) -> str:
    """The factor that is compared: the one with several names. Raises UsageError."""
    several = [name for name in FACTORS if len(getattr(wanted, name)) > 1]
    if len(several) == 1:
        factor = several[0]
        names = getattr(wanted, factor)
        if len(set(names)) == len(names):
            return factor
        raise UsageError(
            f"--{factor} {names[0]}: cannot be compared with itself", "name two different ones"
        )
    if several:
        raise UsageError(
            f"--{several[0]} and --{several[1]}: both have several values",
            "give several values for one of them only",
        )
    raise UsageError(
        "nothing to compare was named",
        "name two runs, or --client A --client B (or --server, or --load)",
    )
