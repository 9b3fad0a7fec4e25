"""The originals' figures, computed from a trial of today by the originals' own formulas."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.model.published import PublishedTable, Row

_NS = 1e9
_ITERATIONS = 100_000


class Figure(msgspec.Struct, frozen=True):
    """How a figure is computed from a trial and its window, and whether more is better."""

    of: Callable[[Outcome, Done, PublishedTable], float]
    more_is_better: bool


def published_value(row: Row, table: PublishedTable) -> float | None:
    """The figure by which the rows of a table are compared; None if the page has none."""
    return statistics.fmean(row.runs_ms) if row.runs_ms else row.figures.get(table.figure)


def measured_value(trials: Sequence[Outcome], table: PublishedTable) -> float | None:
    """The same figure of some trials: their mean; None if there are none."""
    figure = FIGURES[table.figure]
    values = [figure.of(trial, trial.measure, table) for trial in trials if trial.measure]
    return statistics.fmean(values) if values else None


def cpu_seconds(trials: Sequence[Outcome]) -> tuple[float, float] | None:
    """User and system seconds of the client for 100,000 iterations; None if it reports no CPU."""
    windows = [(trial, trial.measure) for trial in trials if trial.measure]
    if not windows or not all(done.cpu_user_ns + done.cpu_system_ns for _, done in windows):
        return None
    user = [done.cpu_user_ns / _groups(trial, done) for trial, done in windows]
    system = [done.cpu_system_ns / _groups(trial, done) for trial, done in windows]
    seconds = _ITERATIONS / _NS
    return statistics.fmean(user) * seconds, statistics.fmean(system) * seconds


def store_bytes(trial: Outcome) -> int | None:
    """What a cache in the client's process takes by its own account; None if it has none."""
    return trial.measure.store_bytes if trial.measure else None


def _ok(done: Done) -> int:
    return sum(operation.ok for operation in done.operations.values())


def _groups(trial: Outcome, done: Done) -> float:
    """The number of loop bodies, of one operation each where the workload has no sequence."""
    return _ok(done) / max(1, len(trial.workload.sequence))


def _score_per_s(trial: Outcome, done: Done, _table: PublishedTable) -> float:
    return _groups(trial, done) * _NS / done.elapsed_ns


def _real_s(trial: Outcome, done: Done, _table: PublishedTable) -> float:
    return _ITERATIONS * done.elapsed_ns / _NS / _groups(trial, done)


def _txn_ms(trial: Outcome, done: Done, _table: PublishedTable) -> float:
    """The time of a transaction, which is one operation of each kind of the mix."""
    return done.elapsed_ns / 1e6 / (_ok(done) / len(trial.workload.mix))


def _summed_s(trial: Outcome, done: Done, table: PublishedTable) -> float:
    """The sum of the times of all callers, for as many operations of each as the original had."""
    callers = trial.load.processes * trial.load.threads
    busy_ns = sum(operation.busy_ns for operation in done.operations.values())
    return busy_ns / _NS / _ok(done) * table.ops_per_process * callers


FIGURES = {
    "score_per_s": Figure(_score_per_s, True),
    "real_s": Figure(_real_s, False),
    "txn_ms": Figure(_txn_ms, False),
    "summed_s": Figure(_summed_s, False),
}
