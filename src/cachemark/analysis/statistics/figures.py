"""The figures of one trial: rate, percentiles with enough operations, CPU time and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from cachemark.model import histogram
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.rounds import Slices


def rate(operations: Sequence[Operation], elapsed_ns: int) -> float:
    """Successful operations per second: ok / elapsed. Failed operations do not count."""
    return sum(operation.ok for operation in operations) / elapsed_ns * 1e9


def ok(window: Done) -> int:
    """The number of successful operations of all kinds."""
    return sum(operation.ok for operation in window.operations.values())


def min_sample_size(percent: float) -> int:
    """The least sample whose two-sided 95 % order-statistic interval of a percentile is finite.

    n ≥ ln(0.025) / ln(p): 6 for p50, 36 for p90, 368 for p99, 3 688 for p99.9.
    """
    return math.ceil(math.log(0.025) / math.log(percent / 100))


def censoring_threshold_ns(operations: Sequence[Operation]) -> int | None:
    """The service time from which on times are lower bounds; None if no operation timed out.

    Operations that time out have the longest service times, because they are given up then. So the
    n time-outs are the n longest service times. Their response times may lie between others.
    """
    timeouts = sum(operation.errors.get("timeout", 0) for operation in operations)
    merged = histogram.merge_encoded(op.service for op in operations)
    if not timeouts or merged is None:
        return None
    # In the middle of a rank, so that rounding cannot take its neighbour.
    return merged.percentile(max(0.0, 100 * (merged.count - timeouts + 0.5) / merged.count))


def response_ns(operations: Sequence[Operation], percent: float) -> int | None:
    """A percentile of the merged response times in ns.

    None if there are too few operations, or if the percentile reaches operations that timed out:
    their true times are unknown.
    """
    merged = histogram.merge_encoded(op.response for op in operations)
    if merged is None or merged.count < min_sample_size(percent):
        return None
    censored_ns = censoring_threshold_ns(operations)
    if censored_ns is not None and merged.percentile(percent) >= censored_ns:
        return None
    # A clock too coarse for an operation says 0, which is below what a histogram may hold.
    return max(histogram.LOWEST_NS, merged.percentile(percent))


def client_cpu_us(window: Done) -> float | None:
    """CPU time of the client's processes per operation; None if a worker does not report it."""
    spent_ns = window.cpu_user_ns + window.cpu_system_ns
    return spent_ns / 1e3 / ok(window) if spent_ns and ok(window) else None


def server_cpu_us(trial: Outcome) -> float | None:
    """CPU time of the server per operation; None for a remote server."""
    if trial.rounds is not None:
        return _slices_cpu_us(trial.rounds.slices, trial.rounds.slices.server_cpu_ns)
    if trial.measure is None or trial.server_use is None:
        return None
    spent_ns = trial.server_use.cpu_ns
    return spent_ns / 1e3 / ok(trial.measure) if spent_ns and ok(trial.measure) else None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure by which trials are compared; `of` returns None if a trial does not have it."""

    name: str
    title: str
    unit: Literal["ops/s", "ns", "us", "bytes"]
    more_is_better: bool
    of: Callable[[Outcome], float | None]


def _rate_of(trial: Outcome) -> float | None:
    window = trial.measure
    return rate(list(window.operations.values()), window.elapsed_ns) if window else None


def _percentile(percent: float) -> Figure:
    def of(trial: Outcome) -> float | None:
        window = trial.measure
        return response_ns(list(window.operations.values()), percent) if window else None

    name = f"p{percent:g}"
    return Figure(name=name, title=name, unit="ns", more_is_better=False, of=of)


def _slices_cpu_us(slices: Slices, spent_ns: Sequence[int]) -> float | None:
    """CPU time per operation of slices; both include their lead-ins. None if it is not known."""
    played = sum(slices.ops) + sum(slices.errors) + sum(slices.lead_in_ops)
    known = bool(spent_ns) and min(spent_ns) >= 0
    return sum(spent_ns) / 1e3 / played if known and played and sum(spent_ns) else None


def _client_cpu(trial: Outcome) -> float | None:
    if trial.rounds is not None:
        return _slices_cpu_us(trial.rounds.slices, trial.rounds.slices.worker_cpu_ns)
    return client_cpu_us(trial.measure) if trial.measure else None


def _server_rss(trial: Outcome) -> float | None:
    return trial.server_use.rss_after_bytes if trial.server_use else None


def _cost(
    name: str, title: str, unit: Literal["us", "bytes"], of: Callable[[Outcome], float | None]
) -> Figure:
    return Figure(name=name, title=title, unit=unit, more_is_better=False, of=of)


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(name="rate", title="ops/s", unit="ops/s", more_is_better=True, of=_rate_of),
        *map(_percentile, (50, 90, 99, 99.9)),
        _cost("client-cpu", "client CPU/op", "us", _client_cpu),
        _cost("server-cpu", "server CPU/op", "us", server_cpu_us),
        _cost("server-rss", "server RSS", "bytes", _server_rss),
    )
}


def figures_of(trials: Sequence[Outcome], figure: Figure) -> list[float] | None:
    """A figure of each trial; None if one of them does not have it, or if it is not above 0.

    To use only the trials that have it would bias the result: the slow trials are those with too
    few operations for a percentile.
    """
    values = [figure.of(trial) for trial in trials]
    found = [float(value) for value in values if value is not None and value > 0]
    return found if found and len(found) == len(values) else None
