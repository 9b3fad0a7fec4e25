"""The originals' figures, computed from trials of today by the originals' own formulas.

A figure of several trials is of all trials together: their operations, and their time. So it
is the same in a report's tables and in the originals' own forms, and a rate is the inverse of a
time. JMH's score alone is the mean of the trials' scores, as JMH defines it.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence

import msgspec

from cachemark.analysis.statistics import answered, cpu_parts_us
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.model.published import PublishedTable, Row

_NS = 1e9
ITERATIONS = 100_000


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over windows: successful operations, and times in nanoseconds."""

    ok: int
    elapsed_ns: int
    send_elapsed_ns: int
    busy_ns: int


class OriginalFigure(msgspec.Struct, frozen=True):
    """How a figure is computed from totals of a workload and a load; is more of it better?

    If `is_mean`, a figure of several trials is the arithmetic mean of theirs.
    """

    of: Callable[[Totals, Workload, Load, PublishedTable], float]
    more_is_better: bool
    is_mean: bool = False


def totals(windows: Iterable[Done]) -> Totals:
    """Add up some windows."""
    all_windows = list(windows)
    operations = [op for window in all_windows for op in window.operations.values()]
    return Totals(
        ok=sum(operation.ok for operation in operations),
        elapsed_ns=sum(window.elapsed_ns for window in all_windows),
        send_elapsed_ns=sum(window.send_elapsed_ns for window in all_windows),
        busy_ns=sum(operation.busy_ns for operation in operations),
    )


def published_value(row: Row, table: PublishedTable) -> float | None:
    """The figure by which the rows of a table are compared; None if the page has none."""
    return statistics.fmean(row.runs_ms) if row.runs_ms else row.figures.get(table.figure)


def measured_value(trials: Sequence[Outcome], table: PublishedTable) -> float | None:
    """The same figure of some trials of one cell; None if there are none."""
    figure = FIGURES[table.figure]
    windows = [trial.measure for trial in trials if trial.measure]
    if not windows:
        return None
    parts = [[window] for window in windows] if figure.is_mean else [windows]
    workload, load = trials[0].workload, trials[0].load
    return statistics.fmean(figure.of(totals(part), workload, load, table) for part in parts)


def loop_seconds(trials: Sequence[Outcome]) -> tuple[float, float, float] | None:
    """User, system and real seconds of 100,000 iterations; None if a client reports no CPU time.

    An iteration is the workload's sequence; without one, it is one operation.
    """
    used = [(parts, trial.measure) for trial in trials if (parts := cpu_parts_us(trial))]
    if not used or len(used) < len(trials):
        return None
    of = totals(window for _, window in used if window)
    each = ITERATIONS / _groups(of, trials[0].workload)
    user, system = (
        sum(parts[at] * answered(window) for parts, window in used if window) for at in (0, 1)
    )
    return user / 1e6 * each, system / 1e6 * each, of.elapsed_ns / _NS * each


def txn_ms(of: Totals, workload: Workload) -> float:
    """The time of a transaction, in milliseconds."""
    return of.elapsed_ns / 1e6 / of.ok * ops_per_txn(workload)


def ops_per_txn(workload: Workload) -> int:
    """The number of operations in one transaction: a pass of a sequence, or one of each kind."""
    if workload.sequence:
        return len(workload.sequence)
    weights = set(workload.mix.values())
    return len(workload.mix) if workload.order == "phases" and len(weights) == 1 else 1


def store_bytes(trial: Outcome) -> int | None:
    """Bytes of a cache in the client's process, by its own account; None if it has none."""
    return trial.measure.store_bytes if trial.measure else None


def _groups(of: Totals, workload: Workload) -> float:
    """The number of loop bodies, of one operation each where the workload has no sequence."""
    return of.ok / max(1, len(workload.sequence))


def _summed_s(of: Totals, _workload: Workload, load: Load, table: PublishedTable) -> float:
    """The sum of the times of all callers, for as many operations of each as the original had."""
    callers = load.processes * load.threads
    return of.busy_ns / _NS / of.ok * table.ops_per_process * callers


FIGURES = {
    "score_per_s": OriginalFigure(
        lambda of, work, _, __: _groups(of, work) * _NS / of.elapsed_ns,
        more_is_better=True,
        is_mean=True,
    ),
    "real_s": OriginalFigure(
        lambda of, work, _, __: ITERATIONS * of.elapsed_ns / _NS / _groups(of, work),
        more_is_better=False,
    ),
    "txn_ms": OriginalFigure(lambda of, work, _, __: txn_ms(of, work), more_is_better=False),
    "summed_s": OriginalFigure(_summed_s, more_is_better=False),
}
