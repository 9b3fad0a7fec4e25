"""The length of a workload: its end, and the same work made longer or shorter. Pure."""

import msgspec

from cachemark.model.experiment import Load, Timing, Workload

# The default of `records` for a fill, and for a tape that is played `passes` times.
_RECORDS = 100_000
# The most operations of one caller with the fastest client and small values.
_MOST_OPS_PER_S = 250_000
_STORES = frozenset({"set", "add", "mset", "fetch"})


def plays_to_an_end(workload: Workload) -> bool:
    """Whether a workload ends by itself: a fill, a trace, or a number of operations."""
    return bool(
        workload.fill_percent is not None
        or workload.ops is not None
        or workload.passes is not None
        or workload.trace
    )


def records_of(workload: Workload) -> int:
    """The operations on the tape of a fill, or of a workload that plays all of its tape."""
    return workload.records or _RECORDS


def chooses_records(workload: Workload) -> bool:
    """Whether the engine chooses the tape's length, for the operations of a window."""
    return workload.records is workload.passes is workload.fill_percent is None


def begins_cold(workload: Workload) -> bool:
    """Whether operations store keys that are absent at the start; False for a trace."""
    steps = [*workload.mix, *(step.partition("@")[0] for step in workload.sequence)]
    stores = any(kind.removesuffix("_noreply") in _STORES for kind in steps)
    return stores and workload.prefill == 0 and workload.hit_ratio is None


def window_ops(workload: Workload, load: Load, timing: Timing) -> int:
    """The most operations that the fastest client plays in a window."""
    if workload.ops is not None:
        return workload.ops
    callers = load.processes * load.threads
    return round(timing.measure_ms / 1e3 * callers * _MOST_OPS_PER_S)


def scaled(workload: Workload, factor: float) -> Workload:
    """A workload that ends by itself, this many times as long; any other workload as it is.

    A fill gets a longer tape with more keys: it still ends when the server is full enough. Phases
    also get another tape: a part of theirs would lack the last kind of operation.
    """

    def times(count: int) -> int:
        return max(1, round(count * factor))

    if workload.ops is not None and workload.order == "phases":
        kinds = len(workload.mix)
        each = max(1, round(workload.ops * factor / kinds))
        keys = msgspec.structs.replace(workload.keys, count=times(workload.keys.count))
        return msgspec.structs.replace(workload, ops=each * kinds, records=each * kinds, keys=keys)
    if workload.ops is not None:
        return msgspec.structs.replace(workload, ops=times(workload.ops))
    if workload.fill_percent is not None:
        keys = msgspec.structs.replace(workload.keys, count=times(workload.keys.count))
        return msgspec.structs.replace(workload, keys=keys, records=times(records_of(workload)))
    return workload


def ending_after(workload: Workload, ops: int) -> Workload:
    """The workload with this number of operations, also on a tape that is played once; no fill."""
    if workload.fill_percent is not None:
        return workload
    once = workload.ops is not None and workload.records == workload.ops
    records = ops if once else workload.records
    return msgspec.structs.replace(workload, ops=ops, records=records, passes=None)


def max_keys_per_command(workload: Workload) -> int:
    """The largest number of keys in one mget or mset of a workload."""
    return max(workload.run, *(keys_in_range(step) or 0 for step in workload.sequence), 0)


def keys_in_range(step: str) -> int | None:
    """The number of keys in the range of a sequence's step: 6 for `mget@0-5`; None without one."""
    first, dash, last = step.partition("@")[2].partition("-")
    return int(last) - int(first) + 1 if dash else None
