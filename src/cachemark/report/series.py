"""Outcomes → series, from which the exports are made.

A series is a cell with its valid trials, in the order in which they were played. Trials that are
not valid, and cells without a valid trial, are in no export, because they have no figures.
"""

import re
from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics import (
    FIGURES,
    CellSummary,
    KindSummary,
    group_operations,
    summarise,
)
from cachemark.model import histogram
from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import cells, is_repeat
from cachemark.model.protocol import Done, Operation
from cachemark.model.run_header import RunHeader
from cachemark.report.cells import cell_title, shortened

ALL = "all"
SEQUENCE = "sequence"


class OperationSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation of a series, or all together; `trials` has the operations of each."""

    kind: str
    summary: KindSummary
    trials: list[list[Operation]]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A cell and its valid trials; `parts` begins with all operations together.

    `groups`: whole repetitions of the sequence as operations, if every trial has their times.
    """

    summary: CellSummary
    outcomes: list[Outcome]
    windows: list[Done]
    parts: list[OperationSeries]
    groups: OperationSeries | None = None

    @property
    def cell(self) -> Cell:
        """The measured cell."""
        return self.summary.cell

    @property
    def workload(self) -> Workload:
        """The work, as the run had it."""
        return self.outcomes[0].workload

    @property
    def load(self) -> Load:
        """The load, as the run had it."""
        return self.outcomes[0].load

    @property
    def timing(self) -> Timing:
        """The parts of a trial, as the run had them."""
        return self.outcomes[0].timing

    @property
    def callers(self) -> int:
        """The number of concurrent callers of all processes together."""
        return self.load.processes * self.load.threads


class ExportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the exports need it; `left_out` has the reason for each cell without a series."""

    header: RunHeader
    series: list[Series]
    left_out: list[str]


def build_exported_run(header: RunHeader, outcomes: Sequence[Outcome]) -> ExportedRun:
    """A run's series in the order of the experiment's grid: the trials' own order is random.

    The second arm of an A/A test is left out.
    """
    grid = {cell: place for place, cell in enumerate(cells(header.experiment))}
    own = [outcome for outcome in outcomes if not is_repeat(outcome.trial.cell)]
    summaries = sorted(summarise(own), key=lambda of_cell: grid.get(of_cell.cell, len(grid)))
    ordered = sorted(outcomes, key=lambda outcome: outcome.trial.index)
    return ExportedRun(
        header=header,
        series=[_series(summary, ordered) for summary in summaries if summary.total],
        left_out=[_left_out_reason(summary) for summary in summaries if not summary.total],
    )


def _series(summary: CellSummary, ordered: Sequence[Outcome]) -> Series:
    valid = [
        outcome
        for outcome in ordered
        if outcome.trial.cell == summary.cell and outcome.verdict == "VALID" and outcome.measure
    ]
    windows = [outcome.measure for outcome in valid if outcome.measure]
    kinds = [summary.total, *summary.kinds] if len(summary.kinds) > 1 else [summary.total]
    return Series(
        summary=summary,
        outcomes=valid,
        windows=windows,
        parts=[_part(kind, windows) for kind in kinds if kind],
        groups=_groups(summary, windows),
    )


def _part(summary: KindSummary, windows: list[Done]) -> OperationSeries:
    wanted = summary.kind
    return OperationSeries(
        kind=wanted or ALL,
        summary=summary,
        trials=[
            [op for kind, op in window.operations.items() if wanted in ("", kind)]
            for window in windows
        ],
    )


def _groups(summary: CellSummary, windows: list[Done]) -> OperationSeries | None:
    if summary.groups is None:
        return None
    trials = [group_operations(window) for window in windows]
    return OperationSeries(kind=SEQUENCE, summary=summary.groups, trials=trials)


def _left_out_reason(summary: CellSummary) -> str:
    reasons = [f"{count} trials {reason}" for reason, count in summary.rejected.items()]
    why = summary.unsupported or "; ".join(reasons) or "no valid trial"
    return f"{cell_title(summary.cell)}: {' '.join(why.split())}"


def slug(*words: str) -> str:
    """A name without spaces, commas and slashes, for file names and tags."""
    names = [re.sub(r"[^A-Za-z0-9._:=?&+-]+", "-", word).strip("-") for word in words]
    return shortened("_".join(names))


def response_histogram(operations: Sequence[Operation]) -> histogram.Histogram | None:
    """The merged response times of some operations; None if there are none."""
    return histogram.merge_encoded(op.response for op in operations)


def all_operations(part: OperationSeries) -> list[Operation]:
    """The operations of all trials of a part."""
    return [operation for trial in part.trials for operation in trial]


def cpu_us(trial: Outcome, side: str) -> float | None:
    """The CPU time of an answer, of the client or server, as every report has it, if known."""
    return FIGURES[f"{side}-cpu"].of(trial)
