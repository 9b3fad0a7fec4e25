"""The published figures of the suites' originals, beside the same cells as measured.

The data files are `suites/published/*.toml`. Absolute figures of different machines cannot be
compared, so each column also relates its cells to the best one of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import msgspec

from cachemark.analysis.number_format import number
from cachemark.analysis.statistics import CellSummary
from cachemark.model.experiment import Workload
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.model.protocol import Done
from cachemark.model.suites import published_figures
from cachemark.report.model import Bar, Section

_NS = 1e9


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A published figure, and the cell that repeats it; without a client, no cell does."""

    label: str
    value: float
    client: str = ""
    workload: str = ""
    load: str = ""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: str
    source: str
    figure: str
    unit: str
    formula: str
    rows: list[_Row]
    remarks: list[str] = []


class _Published(msgspec.Struct, frozen=True, kw_only=True):
    table: list[_Table]


class _Figure(msgspec.Struct, frozen=True):
    """How the original computed its figure from one window, and whether more is better."""

    of: Callable[[Done, Workload, int], float]
    more_is_better: bool


def sections(
    suite: str, outcomes: Sequence[Outcome], summaries: Sequence[CellSummary]
) -> list[Section]:
    """The published tables of a suite, for each server of the run."""
    known = msgspec.toml.decode(published_figures(suite), type=_Published)
    valid = [outcome for outcome in outcomes if outcome.verdict == "VALID" and outcome.measure]
    servers = dict.fromkeys(outcome.trial.cell.server for outcome in outcomes)
    # What runs in the process has its place in the table of each server that it is compared with.
    named = [server for server in servers if server != NO_SERVER] or [NO_SERVER]
    made = (_section(table, server, valid, summaries) for server in named for table in known.table)
    return [section for section in made if section]


def _section(
    table: _Table, server: str, valid: list[Outcome], summaries: Sequence[CellSummary]
) -> Section | None:
    figure = _FIGURES[table.figure]
    here = [_measured(row, server, valid, figure) for row in table.rows]
    if not any(value is not None for value in here):
        return None
    rates = [_rate(row, server, summaries) for row in table.rows]
    then = [row.value for row in table.rows]
    rows = [
        [row.label, number(old), _times(old, then, figure), _text(new), _times(new, here, figure),
         rate, row.client or "no client of today"]
        for row, old, new, rate in zip(table.rows, then, here, rates, strict=True)
    ]  # fmt: skip
    return Section(
        title=f"{table.title}, against {server}",
        columns=["cell", f"published, {table.unit}", "× best", f"as published, here, {table.unit}",
                 "× best", "right: ops/s", "client of today"],
        rows=rows,
        notes=[
            f"published: {table.source}",
            f"as published: {table.formula}; right: single commands answered rightly, by wall "
            "clock, mean of the trials",
            *_agreement(then, here),
            *table.remarks,
        ],
        unit=table.unit,
        more_is_better=figure.more_is_better,
        bars=[
            *(Bar(who=row.label, measure=table.title, value=row.value, published=True)
              for row in table.rows),
            *(Bar(who=row.label, measure=table.title, value=new, published=False)
              for row, new in zip(table.rows, here, strict=True) if new is not None),
        ],
    )  # fmt: skip


def _measured(row: _Row, server: str, valid: list[Outcome], figure: _Figure) -> float | None:
    """The mean over the valid trials of the row's cell; None if there are none."""
    values = [
        figure.of(outcome.measure, outcome.workload, outcome.load.processes * outcome.load.threads)
        for outcome in valid
        if outcome.measure and _is(row, server, outcome.trial.cell)
    ]
    return sum(values) / len(values) if values else None


def _is(row: _Row, server: str, cell: Cell) -> bool:
    same = (cell.client, cell.workload, cell.load) == (row.client, row.workload, row.load)
    return same and cell.server in (server, NO_SERVER)


def _rate(row: _Row, server: str, summaries: Sequence[CellSummary]) -> str:
    for summary in summaries:
        if _is(row, server, summary.cell) and summary.total is not None:
            return number(summary.total.rate.value)
    return "–"


def _times(value: float | None, column: Sequence[float | None], figure: _Figure) -> str:
    """A cell as a multiple of the best of its column."""
    present = [each for each in column if each is not None]
    if value is None or not present:
        return "–"
    best = max(present) if figure.more_is_better else min(present)
    return f"{value / best:.2f}" if best else "–"


def _text(value: float | None) -> str:
    return "–" if value is None else number(value)


def _agreement(then: list[float], here: list[float | None]) -> list[str]:
    """The number of pairs of cells that have the same order as in the published figures."""
    both = [(old, new) for old, new in zip(then, here, strict=True) if new is not None]
    pairs = [
        (a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in combinations(both, 2) if a[0] != b[0]
    ]  # fmt: skip
    if not pairs:
        return []
    return [f"the same order as published in {sum(pairs)} of {len(pairs)} pairs of cells"]


def _ok(done: Done) -> int:
    return sum(operation.ok for operation in done.operations.values())


def _groups(done: Done, workload: Workload) -> float:
    return _ok(done) / max(1, len(workload.sequence))


def _groups_per_s(done: Done, workload: Workload, _callers: int) -> float:
    return _groups(done, workload) * _NS / done.elapsed_ns


def _real_s(done: Done, workload: Workload, _callers: int) -> float:
    """The time of 100,000 iterations."""
    return 100_000 * done.elapsed_ns / _NS / _groups(done, workload)


def _txn_ms(done: Done, workload: Workload, _callers: int) -> float:
    """The time of a transaction, which is one operation of each kind of the mix."""
    return done.elapsed_ns / 1e6 / (_ok(done) / len(workload.mix))


def _summed_s(done: Done, _workload: Workload, callers: int) -> float:
    """The sum of the times of all callers, for 10,000 operations of each."""
    busy_ns = sum(operation.busy_ns for operation in done.operations.values())
    return busy_ns / _NS / _ok(done) * 10_000 * callers


_FIGURES = {
    "groups_per_s": _Figure(_groups_per_s, True),
    "real_s": _Figure(_real_s, False),
    "txn_ms": _Figure(_txn_ms, False),
    "summed_s": _Figure(_summed_s, False),
}
