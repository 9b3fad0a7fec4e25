"""How long a plan takes: what its settings say, and estimates of the rest. Pure.

A sitting starts its arms side by side, warms them up, plays whole squares, and ends its arms. A
trial starts, warms up, plays its window, and ends. Both store the keys at their start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cachemark.analysis.rounds.order import squares_for, williams
from cachemark.endpoints.servers import ServerSpec, parse_spec
from cachemark.model.experiment import Workload
from cachemark.model.outcome import Trial
from cachemark.model.plan import NO_SERVER, Plan, warmup_ms
from cachemark.model.tape_facts import TapeFacts
from cachemark.runs.planning.languages import cost_of_cell
from cachemark.runs.planning.usual_rates import ops_per_s, window_s
from cachemark.runs.sittings.warm_up import USUAL_ROUNDS, most_rounds

# Servers in a JVM. The costs of workers contain the start of a server in C or Rust.
_START_S = {"infinispan": 3.0, "jmemcached": 0.5, "quickcached": 0.7}
# A start keeps two CPUs busy: those of the worker and of the server.
_CPUS_OF_START = 2
# What an arm of a sitting takes after the last slice: its results, its verdict, its end.
_ARM_END_S = 0.07
# A turn takes longer than its slice: the request, CPU clocks, and the operations that have begun.
_TURN_S = 0.0008
# To read a key from the tape, and to make its value.
_KEY_S = 2e-6


Tapes = Mapping[tuple[str, str], TapeFacts]


class SittingTime(NamedTuple):
    """The parts of a sitting, one after the other, in seconds."""

    starts_s: float
    warm_up_s: float
    slices_s: float
    ends_s: float


def planned_s(plan: Plan, cpus: int, tapes: Tapes | None = None) -> float:
    """About how long the whole plan takes; a run that stops when it is settled may end earlier.

    `cpus` is the number of CPUs that the run may use. `tapes` are those of each workload and load:
    what a trace has is not known without them.
    """
    first = _checks_s(plan)
    if plan.sittings:
        whole = sum(sum(sitting_time(plan, sitting.sets, cpus)) for sitting in plan.sittings)
        limit_s = plan.experiment.rounds.max_s
        return first + (whole if limit_s is None else min(whole, limit_s))
    each_s = plan.typical_trials / max(1, len(plan.trials))
    return first + sum(_trial_s(plan, trial, tapes or {}) for trial in plan.trials) * each_s


def block_s(plan: Plan, cpus: int) -> float:
    """About how long a sitting of every cell takes."""
    first = [sitting for sitting in plan.sittings if sitting.block == 0]
    return sum(sum(sitting_time(plan, sitting.sets, cpus)) for sitting in first)


def sitting_time(plan: Plan, sets: Sequence[Sequence[Trial]], cpus: int) -> SittingTime:
    """The parts of one sitting."""
    arms = [trial for part in sets for trial in part]
    at_once = min(len(arms), max(1, cpus / _CPUS_OF_START))
    slice_ms = plan.experiment.rounds.slice_ms
    warm_up_s = 0.0
    for arm in arms:
        longest_ms = warmup_ms(plan.workload(arm.cell), plan.experiment.timing)
        rounds = min(USUAL_ROUNDS, most_rounds(longest_ms, slice_ms))
        warm_up_s += rounds * _turn_s(plan, arm)
    slices_s = 0.0
    for part in sets:
        each_s = sum(_turn_s(plan, arm) for arm in part) / len(part)
        slices_s += _turns(plan, part) * each_s
    return SittingTime(
        starts_s=sum(_start_s(plan, arm) for arm in arms) / at_once,
        warm_up_s=warm_up_s,
        slices_s=slices_s,
        ends_s=len(arms) * _ARM_END_S,
    )


def _checks_s(plan: Plan) -> float:
    """Seconds of the audit before the first trial, which starts each client once."""
    starts = {trial.cell.client: cost_of_cell(trial.cell).start_s for trial in plan.trials}
    return sum(starts.values())


def _turns(plan: Plan, part: Sequence[Trial]) -> int:
    """The slices of a set, with the uncounted one before each row."""
    timing, rounds = plan.experiment.timing, plan.experiment.rounds
    arms = len(part)
    rows = squares_for(timing.measure_ms, rounds.slice_ms, arms) * len(williams(arms))
    return rows * (arms + (arms > 1))


def _turn_s(plan: Plan, arm: Trial) -> float:
    """A slice, and the rest of the operations that begin in it."""
    workload, load = plan.workload(arm.cell), plan.load(arm.cell)
    begun = load.processes * load.threads * load.depth if load.schedule == "closed" else 0
    rest_s = begun / ops_per_s(arm, workload, load)
    return plan.experiment.rounds.slice_ms / 1e3 + _TURN_S + rest_s


def _start_s(plan: Plan, trial: Trial, times: int = 1) -> float:
    """Until the keys are stored, and the end of the processes; workers start so many times."""
    workload, load = plan.workload(trial.cell), plan.load(trial.cell)
    keys = len(workload.keys.names or ()) or workload.keys.count
    stored_s = keys * workload.prefill / ops_per_s(trial, _SETS, load)
    each_s = load.processes * cost_of_cell(trial.cell).start_s + keys * _KEY_S
    return _server_start_s(trial.cell.server) + times * each_s + stored_s


_SETS = Workload(name="prefill", mix={"set": 1})


def _trial_s(plan: Plan, trial: Trial, tapes: Tapes) -> float:
    workload, load = plan.workload(trial.cell), plan.load(trial.cell)
    workers = 2 if workload.server_warmup_ops else 1
    tape = tapes.get((workload.name, load.name))
    whole_s = window_s(trial, workload, load, plan.experiment.timing, tape)
    return _start_s(plan, trial, workers) + whole_s


def _server_start_s(text: str) -> float:
    """The time for a server, or for all of a cluster, in seconds."""
    return 0.0 if text == NO_SERVER else _of_server_s(parse_spec(text))


def _of_server_s(spec: ServerSpec) -> float:
    if spec.inner is not None:
        return spec.count * _of_server_s(spec.inner)
    return _START_S.get(spec.kind, 0.0)
