"""The rates that a run measured, by the threads of the server and the number of callers."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from cachemark.analysis.rate_search import searches
from cachemark.analysis.statistics import CellSummary, Interval, summarise
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.searched_rates import found_rates

# memcached's default.
_THREADS = "4"


class MeasuredRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate with its interval; `service_us` is the server's CPU time for an operation."""

    threads: int
    callers: int
    rate: float
    low: float | None
    high: float | None
    service_us: float | None


class MeasuredRates(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of a run of searches, which meet `objective`, or of closed loops."""

    run: str
    objective: str
    points: list[MeasuredRate]


def measured_rates(run: str, experiment: Experiment, outcomes: Sequence[Outcome]) -> MeasuredRates:
    """The rates of all memcacheds in a run with this id. Raises UsageError if it has none."""
    summaries = summarise(outcomes)
    if experiment.search:
        found = found_rates(searches(outcomes, experiment))
        rates = [(one.typical.after or one.cell, one.typical.threads, one.interval
                  or Interval(value=one.ends.best)) for one in found if one.ends.best]  # fmt: skip
    else:
        closed = {load.name for load in experiment.loads if load.schedule == "closed"}
        rates = [
            (of.cell, 0, of.total.rate) for of in summaries if of.total and of.cell.load in closed
        ]
    loads = {load.name: load for load in experiment.loads}
    points = [
        MeasuredRate(
            threads=threads,
            callers=loads[cell.load].processes * (wider or loads[cell.load].threads),
            rate=rate.value,
            low=rate.low,
            high=rate.high,
            service_us=min(_cpu_us(summaries, cell), default=None),
        )
        for cell, wider, rate in rates
        if (threads := _threads(cell.server))
    ]
    if not points:
        remedy = "a search, or closed loops, against memcached:threads=N"
        raise UsageError(f"run {run}: it has no rate of a memcached", remedy)
    return MeasuredRates(run=run, objective=experiment.search, points=points)


def _cpu_us(summaries: Sequence[CellSummary], cell: Cell) -> Iterator[float]:
    """The server's CPU time for an operation in each load of a cell."""
    for of in summaries:
        same = (of.cell.client, of.cell.server, of.cell.workload)
        if of.server_cpu_us and same == (cell.client, cell.server, cell.workload):
            yield of.server_cpu_us.value


def _threads(server: str) -> int:
    """The threads of a memcached by its specification; 0 of another server.

    >>> _threads("memcached:threads=2,memory=1g"), _threads("memcached"), _threads("embedded")
    (2, 4, 0)
    """
    named = re.search(r"[:,]threads=(\d+)", server)
    return int(named[1] if named else _THREADS) if server.partition(":")[0] == "memcached" else 0
