"""Comparison of clients, servers or loads of one run, paired by block."""

from collections.abc import Iterable, Mapping, Sequence

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
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.questions import asked, stop_rule
from cachemark.analysis.statistics import Comparison
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER, cells
from cachemark.model.run_header import RunHeader
from cachemark.report.compare.in_turns import with_values
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.compare.pairs import (
    Pair,
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
    trials_by_cell,
    valid_trials,
)

# Workloads are not: an operation of one is not an operation of the other.
_FACTORS = ("client", "server", "load")


def compare_within_run(
    header: RunHeader,
    outcomes: Sequence[Outcome],
    wanted: CellFilter,
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare every other name with the first one. Raises UsageError if nothing can be paired."""
    played = trials_by_cell(outcomes)
    baseline, *others = getattr(wanted, factor_of(wanted))
    wanted.check(played, header.id)
    pairs, lost, left_out = _sorted_out(wanted, played)
    if not pairs and not lost:
        raise UsageError(
            f"{header.id}: no cell of {baseline} can be compared with one of {', '.join(others)}",
            reason_lines(left_out)[0] if left_out else "",
        )
    rule = msgspec.structs.replace(stop_rule(header.experiment), margin=margin_percent / 100)
    rows = _rows(pairs, outcomes, figures, rule, header.experiment)
    return ComparisonReport(
        baseline=baseline,
        other=others[0] if len(others) == 1 else "",
        paired=True,
        margin_percent=margin_percent,
        level=rule.level,
        tests=count_tests(rows),
        rows=rows,
        lost=reason_lines([*missing_figures(rows, lost=True), *lost]),
        lost_cells=[cell for cell, _ in lost],
        left_out=reason_lines([*missing_figures(rows, lost=False), *left_out]),
        left_out_cells=[cell for cell, _ in left_out],
        notes=notes(rows, pairs),
    )


def _sorted_out(
    wanted: CellFilter, played: Mapping[Cell, list[Outcome]]
) -> tuple[list[Pair], list[tuple[Cell, str]], list[tuple[Cell, str]]]:
    """The pairs with valid trials on both sides; cells that only the baseline has; all others."""
    factor = factor_of(wanted)
    baseline, *others = getattr(wanted, factor)
    pairs: list[Pair] = []
    lost: list[tuple[Cell, str]] = []
    left_out: list[tuple[Cell, str]] = []
    for first in [
        cell for cell in played if wanted.has(cell) and getattr(cell, factor) == baseline
    ]:
        for second in [c for n in others for c in _counterparts(first, factor, n, played)]:
            before, after = valid_trials(played[first]), valid_trials(played.get(second, []))
            if before and after:
                pairs.append(Pair(baseline=first, other=second, before=[before], after=[after]))
            elif before and second in played:
                lost.append((second, rejection_reason(played[second])))
            else:
                cell = second if before else first
                left_out.append((cell, rejection_reason(played.get(cell, []))))
    return pairs, lost, left_out


def _rows(
    pairs: Sequence[Pair],
    outcomes: Sequence[Outcome],
    names: Sequence[str],
    rule: StopRule,
    experiment: Experiment,
) -> list[ComparisonRow]:
    """The comparisons of the run's own report, in families of what is compared here."""
    wanted = [[of.name for of in figures_for(names, pair.trials)] for pair in pairs]
    shown = list(dict.fromkeys(name for of_pair in wanted for name in of_pair))
    looked = look(read_sittings(outcomes, shown), rule, final=True)
    played = {outcome.trial.cell for outcome in outcomes if outcome.measure is not None}
    questions = asked(experiment, [cell for cell in cells(experiment) if cell in played])
    by_figure: dict[str, dict[int, Comparison]] = {}
    for name in shown:
        numbers = [number for number, of in enumerate(wanted) if name in of]
        both = {number: (pairs[number].other, pairs[number].baseline) for number in numbers}
        errors = own_errors(looked, questions, name)
        bounds = {pair: errors.of(pair) for pair in both.values()}
        compared = compare_pairs(looked, decide_pairs(looked, bounds, name), name, len(bounds))
        by_figure[name] = {
            number: _told(with_values(compared[pair], outcomes), looked, len(bounds))
            for number, pair in both.items()
        }
    return rows_of(pairs, by_figure)


def _told(of: Comparison, looked: Looked, tests: int) -> Comparison:
    """Add the reason for a missing answer, and mark where the correction decides."""
    if of.ratio is not None and of.scope == "within":
        least = count_of(looked.rule.first, of.unit)
        return msgspec.structs.replace(of, why=f"{count_of(of.count, of.unit)}: {least} are needed")
    return with_family_interval(looked, of, tests)


def factor_of(wanted: CellFilter) -> str:
    """The factor that is compared: the one with several names. Raises UsageError."""
    several = [name for name in _FACTORS if len(getattr(wanted, name)) > 1]
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


def _counterparts(first: Cell, factor: str, name: str, cells: Iterable[Cell]) -> list[Cell]:
    """The cells that differ from a cell in the factor only. If there are none: the cell to expect.

    An in-process cache has no server, so it is compared with the client of each server.
    """
    wanted = msgspec.structs.replace(first, **{factor: name})
    if factor != "client":
        return [wanted]
    counterparts = [
        cell
        for cell in cells
        if (cell.client, cell.workload, cell.load) == (name, first.workload, first.load)
        and (cell.server == first.server or NO_SERVER in (cell.server, first.server))
    ]
    return counterparts or [wanted]
