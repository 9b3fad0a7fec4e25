"""A plan in words: its size, and a line for each workload with its load."""

import os
from collections.abc import Mapping

from cachemark.analysis.number_format import count_of, number, rough_time, time
from cachemark.analysis.trace_words import trace_differences
from cachemark.analysis.unseen_writes import lines_about_order
from cachemark.host.placement import usable_cpus
from cachemark.model.experiment import Load, Workload
from cachemark.model.plan import MOST_TRIES, Plan
from cachemark.model.search_steps import TYPICAL_TRIALS
from cachemark.runs.planning.planned_time import Tapes, counted_time, planned_s
from cachemark.runs.tapes import Tape

_MAX_LINES = 6
# With fewer than this part of its keys, a tape is said to leave keys out.
_MOST_KEYS = 0.8
# Above this load average per CPU, the planned time is too optimistic.
_BUSY = 1.5
# A plan names the rate that it assumes if this part of its time depends on it.
_COUNTED_PART = 0.1


def work_lines(plan: Plan, tapes: Mapping[tuple[str, str], Tape]) -> list[str]:
    """Such as `mixed, one-caller: get 9 : set 1 on 2.00 k items of 120 bytes; 1 caller`."""
    lines = [
        f"{workload}, {load}: {_work(plan, tape, workload, load)}"
        for (workload, load), tape in tapes.items()
    ]
    more = len(lines) - _MAX_LINES
    shown = lines if more <= 1 else [*lines[:_MAX_LINES], f"and {more} more"]
    return [*shown, *_differences(plan, tapes), *lines_about_order(plan.experiment)]


def _differences(plan: Plan, tapes: Mapping[tuple[str, str], Tape]) -> list[str]:
    loads = {load.name: load for load in plan.experiment.loads}
    lines = [
        f"{workload}: {line}"
        for (workload, load), tape in tapes.items()
        for line in trace_differences(
            tape.facts, replayed=loads[load].schedule.startswith("replay")
        )
    ]
    return list(dict.fromkeys(lines))


def _work(plan: Plan, tape: Tape, workload_name: str, load_name: str) -> str:
    experiment = plan.experiment
    workload = next(one for one in experiment.workloads if one.name == workload_name)
    load = next(one for one in experiment.loads if one.name == load_name)
    items, data, reuse = tape.data.items, tape.data.data_bytes, tape.facts.reuse
    held = f"{number(items)} items of {data / items:.0f} bytes on average" if items else "no items"
    played = _trace(tape, workload, load) if workload.trace else _operations(workload)
    part = ""
    if reuse is not None and 0 < reuse.used_keys < _MOST_KEYS * tape.facts.keys:
        some = f"whose keys the tape uses {number(reuse.used_keys)}"
        part = f", of {some if items > reuse.used_keys else number(tape.facts.keys) + ' keys'}"
    return f"{played} on {held}{part}; {_load(load)}"


def _trace(tape: Tape, workload: Workload, load: Load) -> str:
    """Such as `day.csv, 9,000 operations, 12.0 s → 6.00 s at 2 ×, played once, cold cache`."""
    parts = [f"{workload.trace}", f"{tape.facts.ops:,} operations"]
    if load.schedule.startswith("replay"):
        speed = float(load.schedule.partition(":")[2] or 1)
        played_ns = tape.facts.period_ns
        parts.append(f"{time(played_ns * speed)} → {time(played_ns)} at {speed:g} ×")
    if workload.passes is not None:
        parts.append("played once" if workload.passes == 1 else f"played {workload.passes} times")
    parts.append(f"{workload.prefill:.0%} stored first" if workload.prefill else "cold cache")
    if workload.trace_gets == "cache-aside":
        parts.append("cache-aside: gets that miss store their keys")
    return ", ".join(parts)


def _operations(workload: Workload) -> str:
    if workload.sequence:
        return " ".join(workload.sequence)
    return " : ".join(f"{kind} {weight:g}" for kind, weight in workload.mix.items())


def _load(load: Load) -> str:
    parts = [count_of(load.threads * load.processes, "caller")]
    if load.schedule != "closed":
        parts.insert(0, load.schedule + (f" at {number(load.rate)}/s" if load.rate else ""))
    if load.connections is not None:
        parts.append(count_of(load.connections * load.processes, "connection"))
    if load.depth > 1:
        parts.append(f"{load.depth} outstanding on each")
    if load.hosts:
        parts.append(count_of(load.hosts, "host"))
    return ", ".join(parts)


def extent(plan: Plan, tapes: Tapes | None = None) -> str:
    """A plan's number of trials and estimated time, in words."""
    experiment = plan.experiment
    busy = busy_note(os.getloadavg()[0], len(usable_cpus()))
    long = f"about {rough_time(_planned_s(plan, tapes))}{busy}{_assumed_rate(plan, tapes)}"
    seed = f"{long}{_replays(plan, tapes)}, seed {experiment.seed}"
    if experiment.search:
        cells = count_of(len(plan.trials) // experiment.blocks, "cell")
        each = "1 search" if experiment.blocks == 1 else f"{experiment.blocks} searches"
        return (
            f"the highest rate with {experiment.search}, {cells}, {each} of about "
            f"{TYPICAL_TRIALS} trials each, {seed}"
        )
    if not plan.sittings:
        trials, blocks = len(plan.trials), count_of(experiment.blocks, "block")
        return f"{count_of(trials, 'trial')}, {blocks}, {seed}"
    arms = len({trial.cell for trial in plan.trials})
    most = "" if experiment.rounds.until == "fixed" else "at most "
    return (
        f"{count_of(arms, 'cell')} in turns of {experiment.rounds.slice_ms:g} ms, "
        f"{most}{count_of(len(plan.sittings), 'sitting')}, {seed}"
    )


def _assumed_rate(plan: Plan, tapes: Tapes | None) -> str:
    """The assumed rate of workloads with a number of operations, in words; empty without them."""
    counted = counted_time(plan, tapes)
    by_number = counted.ops and counted.seconds >= _COUNTED_PART * _planned_s(plan, tapes)
    if plan.sittings or not by_number:
        return ""
    rate = number(counted.ops / counted.seconds)
    return f" at {rate} ops/s (the first trials tell the rate, and the time that is left)"


def _replays(plan: Plan, tapes: Tapes | None) -> str:
    """The longest time of a run with replays, in words; empty without replays."""
    wanted, most = plan.experiment.until_valid, MOST_TRIES
    if wanted is None:
        return ""
    return (
        f", and replays until each cell has {wanted} valid: at most {most * len(plan.trials)} "
        f"trials, about {rough_time(most * _planned_s(plan, tapes))}"
    )


def _planned_s(plan: Plan, tapes: Tapes | None) -> float:
    return planned_s(plan, len(usable_cpus()), tapes)


def busy_note(load_1min: float, cpus: int) -> str:
    """A sentence that a plan takes longer as others use the machine; empty on a quiet one."""
    if load_1min < _BUSY * cpus:
        return ""
    return f" if this machine were quiet (load average {load_1min:.0f})"
