"""Outcomes → a line for each trial, in the order in which they were played."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import pairwise

from cachemark.outcome import Outcome, Sample
from cachemark.report.value import Moment, TrialRow
from cachemark.statistics import rate


def trial_rows(outcomes: Sequence[Outcome]) -> list[TrialRow]:
    """Every trial that was played, or could not be."""
    return [_row(outcome) for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.index)]


def _row(outcome: Outcome) -> TrialRow:
    trial, noise = outcome.trial, outcome.noise
    return TrialRow(
        index=trial.index,
        block=trial.block,
        cell=trial.cell,
        verdict=outcome.verdict or outcome.state,
        reasons=[outcome.reason] if outcome.reason else outcome.reasons,
        ops_per_s=_rate(outcome),
        started_at=outcome.started_at,
        wall_ms=outcome.wall_ms,
        steal_percent=noise.steal_percent if noise else None,
        foreign_cpu_percent=noise.foreign_cpu_percent if noise else None,
        course=_course(outcome),
    )


def _rate(outcome: Outcome) -> float | None:
    """None where the trial does not count: a figure that cannot be trusted is not shown."""
    window = outcome.measure
    if outcome.verdict != "VALID" or window is None or not window.elapsed_ns:
        return None
    return rate(list(window.operations.values()), window.elapsed_ns)


def _course(outcome: Outcome) -> list[Moment]:
    """What its samples say of the window, stretch by stretch; nothing where it does not count."""
    if outcome.verdict != "VALID" or not outcome.samples or not outcome.measure_started_at:
        return []
    began = datetime.datetime.fromisoformat(outcome.measure_started_at)
    began_unix_ns = round(began.timestamp() * 1e9)
    first = Sample(unix_ns=began_unix_ns, ops=0, ops_unix_ns=began_unix_ns)
    return [_moment(old, new, began_unix_ns) for old, new in pairwise([first, *outcome.samples])]


def _moment(old: Sample, new: Sample, began_unix_ns: int) -> Moment:
    return Moment(
        second=(new.unix_ns - began_unix_ns) / 1e9,
        ops_per_s=_slope(old.ops, new.ops, old.ops_unix_ns, new.ops_unix_ns, 1e9),
        server_cpus=_slope(old.cpu_ns, new.cpu_ns, old.unix_ns, new.unix_ns, 1.0),
        server_rss_bytes=new.rss_bytes,
    )


def _slope(
    old: int | None, new: int | None, from_ns: int | None, to_ns: int | None, factor: float
) -> float | None:
    """None where either end is not known, or nothing was told in between."""
    if old is None or new is None or from_ns is None or to_ns is None or to_ns <= from_ns:
        return None
    return factor * (new - old) / (to_ns - from_ns)
