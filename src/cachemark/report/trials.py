"""Outcomes → a line for each trial, in the order in which they were played."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.outcome import Outcome
from cachemark.report.value import TrialRow
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
    )


def _rate(outcome: Outcome) -> float | None:
    """None where the trial does not count: a figure that cannot be trusted is not shown."""
    window = outcome.measure
    if outcome.verdict != "VALID" or window is None or not window.elapsed_ns:
        return None
    return rate(list(window.operations.values()), window.elapsed_ns)
