"""The published figures of the suites' originals, beside the same cells as measured.

Absolute figures of different machines cannot be compared, so each column also relates its cells to
the best one of the column.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations

from cachemark.analysis.number_format import number
from cachemark.analysis.statistics import CellSummary
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.model.published import Page, PublishedTable, Row, published_files
from cachemark.report.model import Bar, Section
from cachemark.report.originals import sample_times
from cachemark.report.originals.figures import FIGURES, measured_value, published_value
from cachemark.report.originals.side_columns import SIDE_COLUMNS


def sections(
    suite: str, outcomes: Sequence[Outcome], summaries: Sequence[CellSummary]
) -> list[Section]:
    """The published tables of a suite, for each server of the run."""
    tables = [(file.page, table) for file in published_files(suite) for table in file.table]
    valid = [outcome for outcome in outcomes if outcome.verdict == "VALID" and outcome.measure]
    servers = dict.fromkeys(outcome.trial.cell.server for outcome in outcomes)
    # What runs in the process has its place in the table of each server that it is compared with.
    named = [server for server in servers if server != NO_SERVER] or [NO_SERVER]
    made = (
        _section(page, table, server, valid, summaries)
        for server in named
        for page, table in tables
    )
    return [section for section in made if section]


def _section(
    page: Page,
    table: PublishedTable,
    server: str,
    valid: list[Outcome],
    summaries: Sequence[CellSummary],
) -> Section | None:
    trials = [[o for o in valid if _is(row, server, o.trial.cell)] for row in table.row]
    if not any(trials):
        return None
    title = f"{table.title}, against {server}"
    source = f"published: {page.title}, {page.version}, {table.section}"
    if table.figure == sample_times.FIGURE:
        return sample_times.section(table, title, source, trials)
    here = [measured_value(of_row, table) for of_row in trials]
    rates = [_rate(row, server, summaries) for row in table.row]
    return Section(
        title=title,
        columns=_columns(table),
        rows=_rows(table, trials, here, rates),
        notes=[
            source,
            f"as published: {table.formula}; right: single commands answered rightly, by wall "
            "clock, mean of the trials",
            *_agreement([published_value(row, table) for row in table.row], here),
            *_averages(table, here),
            *table.remarks,
        ],
        unit=table.unit,
        more_is_better=FIGURES[table.figure].more_is_better,
        bars=_bars(table, here),
    )


def _columns(table: PublishedTable) -> list[str]:
    sides = SIDE_COLUMNS[table.figure]
    return [
        "cell",
        f"published, {table.unit}",
        "× best",
        *[f"published: {side.title}" for side in sides if side.published],
        f"as published, here, {table.unit}",
        "× best",
        *[f"here: {side.title}" for side in sides if side.here],
        "right: ops/s",
        "client of today",
    ]


def _rows(
    table: PublishedTable,
    trials: list[list[Outcome]],
    here: list[float | None],
    rates: list[str],
) -> list[list[str]]:
    sides = SIDE_COLUMNS[table.figure]
    then = [published_value(row, table) for row in table.row]
    best_then, best_here = _best(then, table), _best(here, table)
    return [
        [row.label, _text(old), _times(old, best_then),
         *[side.published(row) for side in sides if side.published],
         _text(new), _times(new, best_here),
         *[side.here(of_row) for side in sides if side.here],
         rate, row.client or "no client of today"]
        for row, old, new, of_row, rate in zip(table.row, then, here, trials, rates, strict=True)
    ]  # fmt: skip


def _bars(table: PublishedTable, here: list[float | None]) -> list[Bar]:
    then = [published_value(row, table) for row in table.row]
    return [
        Bar(who=row.label, measure=table.title, value=value, published=values is then)
        for values in (then, here)
        for row, value in zip(table.row, values, strict=True)
        if value is not None
    ]


def _is(row: Row, server: str, cell: Cell) -> bool:
    same = (cell.client, cell.workload, cell.load) == (row.client, row.workload, row.load)
    return same and cell.server in (server, NO_SERVER)


def _rate(row: Row, server: str, summaries: Sequence[CellSummary]) -> str:
    for summary in summaries:
        if _is(row, server, summary.cell) and summary.total is not None:
            return number(summary.total.rate.value)
    return "–"


def _best(column: Sequence[float | None], table: PublishedTable) -> float | None:
    present = [each for each in column if each is not None]
    pick = max if FIGURES[table.figure].more_is_better else min
    return pick(present, default=None)


def _times(value: float | None, best: float | None) -> str:
    """A cell as a multiple of the best of its column."""
    return f"{value / best:.2f}" if best and value is not None else "–"


def _text(value: float | None) -> str:
    return "–" if value is None else number(value)


def _agreement(then: list[float | None], here: list[float | None]) -> list[str]:
    """The number of pairs of cells that have the same order as in the published figures.

    A cell of today that repeats two published ones makes no pair.
    """
    both = [
        (old, new)
        for old, new in zip(then, here, strict=True)
        if old is not None and new is not None
    ]
    pairs = [
        (a[0] - b[0]) * (a[1] - b[1]) > 0
        for a, b in combinations(both, 2)
        if a[0] != b[0] and a[1] != b[1]
    ]
    if not pairs:
        return []
    return [f"the same order as published in {sum(pairs)} of {len(pairs)} pairs of cells"]


def _averages(table: PublishedTable, here: list[float | None]) -> list[str]:
    """The page's averages over all rows of a client, and the same mean of today's cells."""
    notes: list[str] = []
    for average in table.average:
        rows = zip(table.row, here, strict=True)
        own = [value for row, value in rows if row.label.startswith(f"{average.label},")]
        known = [value for value in own if value is not None]
        today = ""
        if len(known) == len(own):
            txn_ms = statistics.fmean(known)
            today = f"; the same mean here: {number(txn_ms)} ms and {number(txn_ms / 3)} ms"
        txn, operation = average.figures["txn_ms"], average.figures["operation_ms"]
        notes.append(
            f"{average.label}, published averages over all its runs: {txn:.2f} ms a transaction, "
            f"{operation:.2f} ms an operation{today}"
        )
    return notes
