"""The published figures of the suites' originals, beside the same cells as measured.

Absolute figures of different machines cannot be compared, so each column also relates its cells to
the best one of the column.
"""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import msgspec

from cachemark.analysis.number_format import number
from cachemark.analysis.statistics import CellSummary
from cachemark.analysis.statistics.figures import server_rss
from cachemark.model import suites
from cachemark.model.experiment import Experiment, Workload
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.model.published import Page, PublishedTable, Row, published_files
from cachemark.model.server_stats import ServerStats
from cachemark.report.model import Bar, Section
from cachemark.report.originals import claims, sample_times
from cachemark.report.originals.figures import (
    FIGURES,
    loop_seconds,
    measured_value,
    published_value,
    store_bytes,
)

# By a figure's `is_mean`.
_MEAN = {False: "of all trials together", True: "the mean of the trials"}


def sections(
    suite: str, outcomes: Sequence[Outcome], summaries: Sequence[CellSummary]
) -> list[Section]:
    """The published tables of a suite, for each server of the run."""
    tables = [(file.page, table) for file in published_files(suite) for table in file.table]
    if not tables:
        return []
    valid, others = _split(
        suite, [outcome for outcome in outcomes if outcome.verdict == "VALID" and outcome.measure]
    )
    servers = dict.fromkeys(outcome.trial.cell.server for outcome in outcomes)
    # A cache in the process is in the table of each server that it is compared with.
    named = [server for server in servers if server != NO_SERVER] or [NO_SERVER]
    candidates = (_section(page, table, server, valid, summaries)
            for server in named for page, table in tables)  # fmt: skip
    with_trials = [section for section in candidates if section]
    return with_trials + ([_not_compared(others)] if others else [])


def _not_compared(others: list[str]) -> Section:
    return Section(
        title="Not beside published figures",
        columns=["workload, load"],
        rows=[[name] for name in others],
        notes=["under these names the run played other work than the suite has: options changed "
               "it, or the suite is of another version"],
        prose=True,
    )  # fmt: skip


def _section(
    page: Page,
    whole: PublishedTable,
    server: str,
    valid: list[Outcome],
    summaries: Sequence[CellSummary],
) -> Section | None:
    row_trials = [(row, [o for o in valid if _is(row, server, o.trial.cell)]) for row in whole.row]
    if not any(own for _, own in row_trials):
        return None
    # A row without published figures is there for a cell of today.
    shown = [(row, own) for row, own in row_trials if own or row.is_published]
    table = msgspec.structs.replace(whole, row=[row for row, _ in shown])
    trials = [own for _, own in shown]
    title = f"{table.title}, against {server}"
    source = f"published: {page.title}, {page.version}, {table.section}"
    if table.figure == sample_times.FIGURE:
        return sample_times.section(table, title, source, trials)
    here = [measured_value(own, table) for own in trials]
    rates = [_rate(row, server, summaries) if own else "–" for row, own in shown]
    columns = _columns(table, trials, here, rates)
    return Section(
        title=title,
        columns=[heading for heading, _ in columns],
        rows=[list(cells) for cells in zip(*[cells for _, cells in columns], strict=True)],
        notes=[
            source,
            f"as published: {table.formula}; here {_MEAN[FIGURES[table.figure].is_mean]}; right: "
            "successful single commands, by wall clock, as in the ranking",
            "× best: of the rows that have both figures",
            *_agreement([published_value(row, table) for row in table.row], here),
            *_averages(table, here),
            *claims.judged(table, trials),
            *table.remarks,
        ],
        unit=table.unit,
        more_is_better=FIGURES[table.figure].more_is_better,
        bars=_bars(table, here),
    )


def _columns(
    table: PublishedTable, trials: list[list[Outcome]], here: list[float | None], rates: list[str]
) -> list[tuple[str, list[str]]]:
    """Heading and cells of each column. A side column without a figure is left out."""
    sides = SIDE_COLUMNS[table.figure]
    then = [published_value(row, table) for row in table.row]
    beside = [(f"published: {side.title}", list(map(side.published, table.row)))
              for side in sides if side.published]  # fmt: skip
    beside += [(f"here: {side.title}", list(map(side.here, trials))) for side in sides if side.here]
    return [
        ("cell", [row.label for row in table.row]),
        (
            f"published, {table.unit}",
            [_published_digits(row, value) for row, value in zip(table.row, then, strict=True)],
        ),
        ("× best", _times(then, here, table)),
        (f"as published, here, {table.unit}", [_digits(value) for value in here]),
        ("× best", _times(here, then, table)),
        *[side for side in beside if set(side[1]) != {"–"}],
        ("right: ops/s", rates),
        ("client of today", [row.client or "no client of today" for row in table.row]),
    ]


def _bars(table: PublishedTable, here: list[float | None]) -> list[Bar]:
    then = [published_value(row, table) for row in table.row]
    return [
        Bar(label=row.label, measure=table.title, value=value, published=values is then)
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


def _times(
    column: Sequence[float | None], other: Sequence[float | None], table: PublishedTable
) -> list[str]:
    """Each cell as a multiple of the best, of the rows that have a figure in both columns."""
    both = [own if its is not None else None for own, its in zip(column, other, strict=True)]
    pick = max if FIGURES[table.figure].more_is_better else min
    best = pick((own for own in both if own is not None), default=None)
    return [f"{own / best:.2f}" if best and own is not None else "–" for own in both]


def _published_digits(row: Row, value: float | None) -> str:
    """All digits of the page; of a mean of single runs, as of a figure of today."""
    return _digits(value) if row.runs_ms or value is None else f"{value:.10g}"


def _digits(value: float | None) -> str:
    """A figure of today, in the page's unit."""
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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


def _split(suite: str, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[str]]:
    """The trials with the suite's own work, and the names of what plays other work."""
    grids = [suites.find(suite)]
    if grids[0].quick is not None:
        grids.append(suites.find(suite, quick=True))
    own: list[Outcome] = []
    others: list[str] = []
    for outcome in outcomes:
        if any(_plays(grid, outcome) for grid in grids):
            own.append(outcome)
        else:
            others.append(f"{outcome.trial.cell.workload}, {outcome.trial.cell.load}")
    return own, list(dict.fromkeys(others))


def _plays(grid: Experiment, outcome: Outcome) -> bool:
    """Any number of threads is the suite's own: a load's name has it."""
    threads = outcome.load.threads
    loads = [
        msgspec.structs.replace(load, name=outcome.load.name, threads=threads)
        for load in grid.loads
    ]
    played = _without_loads(outcome.workload)
    return outcome.load in loads and played in map(_without_loads, grid.workloads)


def _without_loads(workload: Workload) -> Workload:
    return msgspec.structs.replace(workload, loads=None)


_MB = 2**20
_ABSENT = "–"


class SideColumn(msgspec.Struct, frozen=True):
    """A column of the page, of today, or of both."""

    title: str
    published: Callable[[Row], str] | None = None
    here: Callable[[Sequence[Outcome]], str] | None = None


def _error(row: Row) -> str:
    error = row.figures.get("error_per_s")
    return _ABSENT if error is None else f"± {error:.10g}"


def _measured_cpu(trials: Sequence[Outcome]) -> str:
    """Absent if the client does not report its CPU time in each window."""
    seconds = loop_seconds([trial for trial in trials if trial.measure])
    if seconds is None:
        return _ABSENT
    user_s, system_s, _ = seconds
    return _cpu(user_s, system_s, user_s + system_s)


def _cpu(user_s: float, system_s: float, total_s: float) -> str:
    return f"{user_s:.2f} + {system_s:.2f} = {total_s:.2f}"


def _published_memory(row: Row) -> str:
    memory = row.figures.get("memory_mb")
    return _ABSENT if memory is None else f"{memory:g}"


def _mean_mb(of: Callable[[Outcome], float | None], trials: Sequence[Outcome]) -> str:
    known = [size for trial in trials if (size := of(trial))]
    whole = trials and len(known) == len(trials)
    return f"{statistics.fmean(known) / _MB:.4g}" if whole else _ABSENT


SIDE_COLUMNS: dict[str, tuple[SideColumn, ...]] = {
    "score_per_s": (SideColumn("error", _error),),
    "real_s": (
        SideColumn(
            "user + system = total, s",
            lambda row: _cpu(*map(row.figures.__getitem__, ("user_s", "system_s", "total_s"))),
            _measured_cpu,
        ),
    ),
    "txn_ms": (
        SideColumn("runs, ms", lambda row: ", ".join(f"{ms:g}" for ms in row.runs_ms) or _ABSENT),
    ),
    "summed_s": (
        SideColumn("memory, MB", _published_memory),
        SideColumn("store's own account, MB", None, partial(_mean_mb, store_bytes)),
        SideColumn(
            "server's bytes, MB",
            None,
            partial(_mean_mb, lambda of: ServerStats(of.stats_after).number("bytes")),
        ),
        SideColumn("server's RSS, MB", None, partial(_mean_mb, server_rss)),
    ),
}
