"""The time that a plan takes: from its settings, with estimates for the rest. Pure.

A sitting starts its arms side by side, warms them up, plays whole squares, and ends its arms. A
trial starts, warms up, plays its window, and ends. Both store the keys at their start.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from cachemark.analysis.rounds.looks import looks_that_fit
from cachemark.analysis.rounds.questions import stop_rule
from cachemark.endpoints.servers import ServerSpec, memory_limit, parse_spec
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import NO_SERVER, Plan, warmup_ms
from cachemark.model.tape_facts import TapeFacts
from cachemark.model.units import parse_ns, parse_size
from cachemark.model.work_length import keys_in_range, records_of
from cachemark.runs.planning.languages import cost_of_cell
from cachemark.runs.sittings.order import squares_for, williams
from cachemark.runs.sittings.warm_up import USUAL_ROUNDS, most_rounds
from cachemark.runs.trials.prefill import fill_sample_ops

# Operations of a slow client with one caller, several callers, no reply, no server.
_OPS_PER_S, _SEVERAL_OPS_PER_S, _NOREPLY_OPS_PER_S = 8_000, 12_000, 100_000
_IN_PROCESS_OPS_PER_S = 300_000
# An operation on many keys takes as long as one on a single key, and so much of it for each key.
_KEY_PART = 0.1
_BATCHES = ("mget", "mset")
# The assumed bytes of keys, and of values whose sizes have another distribution than a range.
_KEY_BYTES, _VALUE_BYTES = 20, 1000
# Servers in a JVM. The costs of workers contain the start of a server in C or Rust.
_START_S = {"infinispan": 3.0, "jmemcached": 0.5, "quickcached": 0.7}
# A start keeps two CPUs busy: the worker's and the server's.
_CPUS_OF_START = 2
# The time of an arm after the last slice: its results, its verdict, its end.
_ARM_END_S = 0.07
# A turn takes longer than its slice: the request, CPU clocks, and the operations that have begun.
_TURN_S = 0.0008
# A time limit is refused if even a machine that needs less than planned has too little time.
_PART_OF_PLANNED = 0.75
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
    """The estimated time of the whole plan; a run that stops once settled may end earlier.

    `cpus` is the number of CPUs that the run may use. `tapes`: one for each workload and load;
    without them a trace's length is unknown.
    """
    first = _checks_s(plan)
    if plan.sittings:
        whole = sum(sum(sitting_time(plan, sitting.sets, cpus)) for sitting in plan.sittings)
        limit_s = plan.experiment.rounds.max_s
        return first + (whole if limit_s is None else min(whole, limit_s))
    each_s = plan.typical_trials / max(1, len(plan.trials))
    return first + sum(_trial_s(plan, trial, tapes or {}) for trial in plan.trials) * each_s


class CountedTime(NamedTuple):
    """The windows of a plan that end after a number of operations: their time in seconds."""

    ops: float
    seconds: float


def counted_time(plan: Plan, tapes: Tapes | None = None) -> CountedTime:
    """The clients' rate that a plan assumes; only trials show the real length of these windows."""
    ops = seconds = 0.0
    for trial in plan.trials:
        workload, load = plan.workload(trial.cell), plan.load(trial.cell)
        tape = (tapes or {}).get((workload.name, load.name))
        counted = _counted_ops(trial, workload, load, tape)
        if counted is not None:
            ops += counted
            seconds += counted / ops_per_s(trial, workload, load)
    return CountedTime(ops, seconds)


def left_s(
    plan: Plan, tapes: Tapes, left: Sequence[Trial], played: Sequence[Outcome]
) -> float | None:
    """The estimated time of the trials `left`, in seconds; None without trials or outcomes.

    A trial takes as long as earlier trials of its cell. For a new cell, the planned time is
    multiplied by how much longer than planned its workload and load took, or all trials.
    """
    taken = [(one.trial, one.wall_ms / 1e3) for one in played if one.state == "measured"]
    if not taken or not left:
        return None

    def work(trial: Trial) -> tuple[str, str]:
        return trial.cell.workload, trial.cell.load

    def one_s(trial: Trial) -> float:
        if same := [wall_s for other, wall_s in taken if other.cell == trial.cell]:
            return fmean(same)
        alike = [one for one in taken if work(one[0]) == work(trial)] or taken
        planned = sum(_trial_s(plan, other, tapes) for other, _ in alike)
        return _trial_s(plan, trial, tapes) * sum(wall_s for _, wall_s in alike) / planned

    return sum(map(one_s, left))


def block_s(plan: Plan, cpus: int) -> float:
    """The estimated time of a sitting of every cell."""
    first = [sitting for sitting in plan.sittings if sitting.block == 0]
    return sum(sum(sitting_time(plan, sitting.sets, cpus)) for sitting in first)


def check_looks(plan: Plan, cpus: int) -> None:
    """Raise UsageError if a run that stops when it is settled has no time for its first look.

    `cpus` is the number of CPUs that the run may use.
    """
    limit_s, rule = plan.experiment.rounds.max_s, stop_rule(plan.experiment)
    if limit_s is None or not rule.looks or not plan.sittings:
        return
    each_s = block_s(plan, cpus)
    if not looks_that_fit(limit_s, _PART_OF_PLANNED * each_s, rule.looks):
        raise UsageError(
            f"the first answer comes after {rule.first} sittings, which take about "
            f"{rule.first * each_s:.0f} s; the time limit is {limit_s} s",
            "a longer --max (rounds.max_s), fewer clients or servers, a shorter "
            "timing.measure_ms, or --set rounds.until=fixed",
        )


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
    """Until the keys are stored, and the end of the processes; workers start `times` times."""
    workload, load = plan.workload(trial.cell), plan.load(trial.cell)
    keys = len(workload.keys.names or ()) or workload.keys.count
    stored_s = keys * workload.prefill / ops_per_s(trial, _SETS, load)
    each_s = load.processes * cost_of_cell(trial.cell).start_s + keys * _KEY_S
    server = trial.cell.server
    server_s = 0.0 if server == NO_SERVER else _of_server_s(parse_spec(server))
    return server_s + times * each_s + stored_s


_SETS = Workload(name="prefill", mix={"set": 1})


def _trial_s(plan: Plan, trial: Trial, tapes: Tapes) -> float:
    workload, load = plan.workload(trial.cell), plan.load(trial.cell)
    workers = 2 if workload.server_warmup_ops else 1
    tape = tapes.get((workload.name, load.name))
    whole_s = window_s(trial, workload, load, plan.experiment.timing, tape)
    return _start_s(plan, trial, workers) + whole_s


def _of_server_s(spec: ServerSpec) -> float:
    if spec.inner is not None:
        return spec.count * _of_server_s(spec.inner)
    return _START_S.get(spec.kind, 0.0)


def ops_per_s(trial: Trial, workload: Workload, load: Load) -> float:
    """The operations per second of a slow client; a caller waits for each of its round trips."""
    if trial.cell.server == NO_SERVER:
        return _IN_PROCESS_OPS_PER_S
    callers = load.processes * load.threads * load.depth
    rate = _OPS_PER_S if callers == 1 else _SEVERAL_OPS_PER_S
    parts = [(weight, _operation_s(kind, keys, rate)) for kind, keys, weight in _kinds(workload)]
    total = sum(weight for weight, _ in parts)
    each_s = sum(weight * each_s for weight, each_s in parts) / total if parts else 1 / rate
    spec = parse_spec(trial.cell.server)
    trip_s = parse_ns(spec.details, "a distance") / 1e9 if spec.kind == "distant" else 0.0
    return 1 / (each_s + trip_s / callers)


def window_s(
    trial: Trial, workload: Workload, load: Load, timing: Timing, tape: TapeFacts | None = None
) -> float:
    """The measured window, with the warm-up before it. Of a trace, the tape says what it has."""
    # The warm-up of a fill is its own first part.
    warm_up_s = 0.0 if workload.fill_percent else warmup_ms(workload, timing) / 1e3
    counted = _counted_ops(trial, workload, load, tape)
    if counted is not None:
        return warm_up_s + counted / ops_per_s(trial, workload, load)
    if workload.passes is not None and tape:
        return warm_up_s + workload.passes * tape.period_ns / 1e9
    return warm_up_s + timing.measure_ms / 1e3


def _counted_ops(
    trial: Trial, workload: Workload, load: Load, tape: TapeFacts | None
) -> float | None:
    """The operations that a window plays, however long they take; None if its time is known."""
    if workload.fill_percent is not None:
        return fill_sample_ops(workload) + _fill_ops(trial, workload)
    if workload.ops is not None:
        return workload.ops
    if workload.passes is not None and load.schedule == "closed":
        return workload.passes * (tape.ops if tape else records_of(workload))
    return None


def _kinds(workload: Workload) -> Iterator[tuple[str, int, float]]:
    """Each kind of operation with its keys and its weight."""
    for kind, weight in workload.mix.items():
        yield kind, workload.run if kind.startswith(_BATCHES) else 1, weight
    for step in workload.sequence:
        kind, named, _ = step.partition("@")
        drawn = workload.run if kind.startswith(_BATCHES) and not named else 1
        yield kind, keys_in_range(step) or drawn, 1.0


def _operation_s(kind: str, keys: int, rate: float) -> float:
    # The values of a batch take longer than the reply that it does without.
    quiet = kind.endswith("_noreply") and not kind.startswith(_BATCHES)
    return (1 + _KEY_PART * (keys - 1)) / (_NOREPLY_OPS_PER_S if quiet else rate)


def _fill_ops(trial: Trial, workload: Workload) -> float:
    """The operations until a server is full enough; all of the tape if its memory is not known."""
    limit = memory_limit(parse_spec(trial.cell.server))
    steps = list(_kinds(workload))
    stored = sum(keys * weight for kind, keys, weight in steps if "set" in kind)
    if limit is None or not stored:
        return records_of(workload)
    data_bytes = _KEY_BYTES + _mean_bytes(workload.values.size)
    items = (workload.fill_percent or 0) / 100 * limit.limit_bytes
    items /= limit.model.needed_bytes(1, data_bytes)
    return min(records_of(workload), items / stored * sum(weight for _, _, weight in steps))


def _mean_bytes(law: str) -> int:
    sizes = law.split("..")
    if not all(re.fullmatch(r"[0-9]+[kKmM]?", size) for size in sizes):
        return _VALUE_BYTES
    return sum(parse_size(size, "size") for size in sizes) // len(sizes)
