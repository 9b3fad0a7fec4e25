"""How long the window of a trial is, by what slow clients do in a second. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cachemark.endpoints.servers import memory_limit, parse_spec
from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.outcome import Trial
from cachemark.model.plan import NO_SERVER, warmup_ms
from cachemark.model.tape_facts import TapeFacts
from cachemark.model.units import parse_size
from cachemark.model.work_length import keys_in_range, records_of
from cachemark.runs.trials.fill import fill_sample_ops

# What a slow client does with one caller, with several callers, without a reply, without a server.
_OPS_PER_S, _SEVERAL_OPS_PER_S, _NOREPLY_OPS_PER_S = 8_000, 12_000, 100_000
_IN_PROCESS_OPS_PER_S = 300_000
# An operation on many keys takes as long as one on a single key, and so much of it for each key.
_KEY_PART = 0.1
_BATCHES = ("mget", "mset")
# What is assumed of keys, and of values whose sizes have another distribution than a range.
_KEY_BYTES, _VALUE_BYTES = 20, 1000


def ops_per_s(trial: Trial, workload: Workload, load: Load) -> float:
    """The operations per second of a slow client."""
    if trial.cell.server == NO_SERVER:
        return _IN_PROCESS_OPS_PER_S
    callers = load.processes * load.threads * load.depth
    rate = _OPS_PER_S if callers == 1 else _SEVERAL_OPS_PER_S
    parts = [(weight, _operation_s(kind, keys, rate)) for kind, keys, weight in _kinds(workload)]
    total = sum(weight for weight, _ in parts)
    return total / sum(weight * each_s for weight, each_s in parts) if parts else rate


def window_s(
    trial: Trial, workload: Workload, load: Load, timing: Timing, tape: TapeFacts | None = None
) -> float:
    """The measured window, with the warm-up before it. Of a trace, the tape says what it has."""
    rate = ops_per_s(trial, workload, load)
    if workload.fill_percent is not None:
        return (fill_sample_ops(workload) + _fill_ops(trial, workload)) / rate
    warm_up_s = warmup_ms(workload, timing) / 1e3
    if workload.ops is not None:
        return warm_up_s + workload.ops / rate
    if workload.passes is not None and load.schedule == "closed":
        records = tape.ops if tape else records_of(workload)
        return warm_up_s + workload.passes * records / rate
    if workload.passes is not None and tape:
        return warm_up_s + workload.passes * tape.period_ns / 1e9
    return warm_up_s + timing.measure_ms / 1e3


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
    """The mean of a size or of a range of sizes."""
    sizes = law.split("..")
    if not all(re.fullmatch(r"[0-9]+[kKmM]?", size) for size in sizes):
        return _VALUE_BYTES
    return sum(parse_size(size, "size") for size in sizes) // len(sizes)
