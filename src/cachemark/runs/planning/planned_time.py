"""How long a plan takes: what its settings say, and a rough estimate of the rest. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.rounds.order import squares_for, williams
from cachemark.model.experiment import Workload
from cachemark.model.outcome import Trial
from cachemark.model.plan import Plan, warmup_ms

# A server and a worker that start alone, with the prefill, and their end.
_START_S = 1.2
# The same for each arm of a sitting, where several start side by side.
_SHARED_START_S = 0.6
# For workloads that end after a number of operations: what a slow client does with one caller, and
# what it does if no operation has a reply.
_OPS_PER_S, _NOREPLY_OPS_PER_S = 8_000, 40_000


def planned_s(plan: Plan) -> float:
    """About how long the whole plan takes; a run that stops when it is settled may end earlier."""
    if plan.sittings:
        whole = sum(_sitting_s(plan, sitting.sets) for sitting in plan.sittings)
        limit_s = plan.experiment.rounds.max_s
        return whole if limit_s is None else min(whole, limit_s)
    each_s = plan.typical_trials / max(1, len(plan.trials))
    return sum(_trial_s(plan, trial) for trial in plan.trials) * each_s


def block_slices_s(plan: Plan) -> float:
    """How long the counted slices of one block of sittings take at least."""
    first = [sitting for sitting in plan.sittings if sitting.block == 0]
    return sum(_slices_s(plan, part) for sitting in first for part in sitting.sets)


def _sitting_s(plan: Plan, sets: Sequence[Sequence[Trial]]) -> float:
    arms = [trial for part in sets for trial in part]
    warm_up_s = sum(_warmup_s(plan, arm) for arm in arms)
    slices_s = sum(_slices_s(plan, part) for part in sets)
    return _SHARED_START_S * len(arms) + warm_up_s + slices_s


def _slices_s(plan: Plan, part: Sequence[Trial]) -> float:
    """The slices of a set, with the uncounted one before each row."""
    timing, rounds = plan.experiment.timing, plan.experiment.rounds
    arms = len(part)
    rows = squares_for(timing.measure_ms, rounds.slice_ms, arms) * len(williams(arms))
    return rows * (arms + (arms > 1)) * rounds.slice_ms / 1e3


def _warmup_s(plan: Plan, trial: Trial) -> float:
    return warmup_ms(plan.workload(trial.cell), plan.experiment.timing) / 1e3


def _trial_s(plan: Plan, trial: Trial) -> float:
    workload = plan.workload(trial.cell)
    window_s = _window_s(workload, plan.experiment.timing.measure_ms)
    starts = 2 if workload.server_warmup_ops else 1
    return starts * _START_S + _warmup_s(plan, trial) + window_s


def _window_s(workload: Workload, measure_ms: int) -> float:
    if workload.ops is None:
        return measure_ms / 1e3
    quiet = all(kind.endswith("noreply") for kind in (*workload.mix, *workload.sequence))
    return workload.ops / (_NOREPLY_OPS_PER_S if quiet else _OPS_PER_S)
