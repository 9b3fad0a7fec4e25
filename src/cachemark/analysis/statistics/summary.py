"""The summary of the trials of each cell."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics.figures import (
    FIGURES,
    censoring_threshold_ns,
    figures_of,
    min_sample_size,
    rate,
    response_ns,
)
from cachemark.analysis.statistics.interval import Interval, geometric_mean
from cachemark.analysis.statistics.percentile_curve import CurvePoint, curve
from cachemark.analysis.statistics.within_trial import WithinTrial, within
from cachemark.model import histogram
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done, Operation

PERCENTILES = (50.0, 90.0, 99.0, 99.9)


class TimeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the merged histograms in ns; None if there are too few operations for one.

    A percentile that reaches operations that timed out is a lower bound, in `at_least`. `curve` is
    for plots; only the response times of all kinds together have one.
    """

    count: int
    percentiles: dict[float, int | None]
    max_ns: int
    at_least: dict[float, int] = {}
    curve: list[CurvePoint] = []


class KindSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation in a cell's valid trials; `kind` is empty for all kinds together."""

    kind: str
    ok: int
    rate: Interval
    hits: int
    misses: int
    errors: dict[str, int]
    response: TimeSummary | None
    service: TimeSummary | None
    p50_ns: Interval | None
    p99_ns: Interval | None


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A cell: the figures of its valid trials, and the reasons why others are not valid.

    `within`: intervals within the trial, if only one is valid.
    """

    cell: Cell
    trials: int
    valid: int
    library: str
    library_version: str
    runtime: str
    server_version: str
    total: KindSummary | None
    kinds: list[KindSummary]
    client_cpu_us: Interval | None
    server_cpu_us: Interval | None
    server_rss_bytes: Interval | None = None
    within: WithinTrial | None = None
    rejected: dict[str, int]
    notes: list[str]
    unsupported: str
    remedy: str


def summarise(outcomes: Sequence[Outcome]) -> list[CellSummary]:
    """Summaries of all cells, in the order of their first appearance."""
    cells: dict[bytes, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.index):
        cells.setdefault(msgspec.json.encode(outcome.trial.cell), []).append(outcome)
    return [_summary(trials) for trials in cells.values()]


def _summary(trials: list[Outcome]) -> CellSummary:
    valid = [t for t in trials if t.state == "measured" and t.verdict == "VALID" and t.measure]
    unsupported = next((t for t in trials if t.state == "unsupported"), None)
    ready = next((t.worker for t in trials if t.worker), None)
    server = next((t.server for t in trials if t.server), None)
    windows = [trial.measure for trial in valid if trial.measure]
    kinds = sorted({kind for window in windows for kind in window.operations})
    return CellSummary(
        cell=trials[0].trial.cell,
        trials=len(trials),
        valid=len(valid),
        library=ready.library if ready else "",
        library_version=ready.library_version if ready else "",
        runtime=ready.runtime if ready else "",
        server_version=server.version if server else "",
        total=_kind("", windows, kinds) if windows else None,
        kinds=[_kind(kind, windows, [kind]) for kind in kinds],
        client_cpu_us=_over_trials(valid, "client-cpu"),
        server_cpu_us=_over_trials(valid, "server-cpu"),
        server_rss_bytes=_over_trials(valid, "server-rss"),
        within=within(valid[0], PERCENTILES) if len(valid) == 1 else None,
        rejected=_rejected(trials),
        notes=list(dict.fromkeys(note for trial in trials for note in trial.notes)),
        unsupported=unsupported.reason if unsupported else "",
        remedy=unsupported.remedy if unsupported else "",
    )


def _kind(name: str, windows: list[Done], kinds: list[str]) -> KindSummary:
    parts = [[w.operations[kind] for kind in kinds if kind in w.operations] for w in windows]
    operations = [operation for part in parts for operation in part]
    errors: dict[str, int] = {}
    for operation in operations:
        for kind, count in operation.errors.items():
            errors[kind] = errors.get(kind, 0) + count
    censored_ns = censoring_threshold_ns(operations)
    return KindSummary(
        kind=name,
        ok=sum(operation.ok for operation in operations),
        rate=_rate(parts, windows),
        hits=sum(operation.hits for operation in operations),
        misses=sum(operation.misses for operation in operations),
        errors=errors,
        response=_times(
            [operation.response for operation in operations], censored_ns, whole=not name
        ),
        service=_times([operation.service for operation in operations], censored_ns),
        p50_ns=_across(parts, 50),
        p99_ns=_across(parts, 99),
    )


def _rate(parts: list[list[Operation]], windows: list[Done]) -> Interval:
    """Geometric mean over trials. If a trial did none, the rate of all trials, without interval.

    To leave such a trial out would make a client that sometimes fails look faster.
    """
    rates = [rate(part, w.elapsed_ns) for part, w in zip(parts, windows, strict=True)]
    if all(rates):
        return geometric_mean(rates)
    everything = [operation for part in parts for operation in part]
    return Interval(value=rate(everything, sum(window.elapsed_ns for window in windows)))


def _times(
    blobs: list[str | None], censored_ns: int | None, *, whole: bool = False
) -> TimeSummary | None:
    merged = histogram.merge_encoded(blobs)
    if merged is None:
        return None
    supported = {
        percent: merged.percentile(percent)
        for percent in PERCENTILES
        if merged.count >= min_sample_size(percent)
    }
    edge_ns = histogram.HIGHEST_NS + 1 if censored_ns is None else censored_ns
    exact = {percent: ns for percent, ns in supported.items() if ns < edge_ns}
    return TimeSummary(
        count=merged.count,
        percentiles={percent: exact.get(percent) for percent in PERCENTILES},
        max_ns=merged.max(),
        at_least={percent: ns for percent, ns in supported.items() if percent not in exact},
        curve=[point for point in curve(merged) if point.ns < edge_ns] if whole else [],
    )


def _across(parts: list[list[Operation]], percent: float) -> Interval | None:
    """The geometric mean of the trials' percentiles, with its interval."""
    found = [response_ns(part, percent) for part in parts]
    values = [float(value) for value in found if value is not None]
    # To use only the trials with enough operations would bias the interval.
    return geometric_mean(values) if values and len(values) == len(parts) else None


def _over_trials(valid: list[Outcome], name: str) -> Interval | None:
    """The geometric mean of a figure over trials; None if one of them does not have it."""
    values = figures_of(valid, FIGURES[name]) if valid else None
    return geometric_mean(values) if values else None


def _rejected(trials: list[Outcome]) -> dict[str, int]:
    """The reasons why trials are not valid, and the number of trials for each."""
    reasons: dict[str, int] = {}
    for trial in trials:
        texts: list[str] = []
        if trial.state == "failed":
            texts = [f"failed: {trial.reason}"]
        elif trial.state == "measured" and trial.verdict != "VALID":
            texts = [f"{trial.verdict}: {reason}" for reason in trial.reasons]
        for text in texts:
            reasons[text] = reasons.get(text, 0) + 1
    return reasons
