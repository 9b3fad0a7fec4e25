"""How long a workload is: its end, and the same work made longer or shorter. Pure."""

from __future__ import annotations

import msgspec

from cachemark.model.experiment import Workload


def scaled(workload: Workload, factor: float) -> Workload:
    """A workload that ends by itself, this many times as long; any other workload as it is.

    A fill gets a longer tape with more keys: it still ends when the server is full enough. So do
    phases: part of their tape would be all of the first kind and none of the last.
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
        return msgspec.structs.replace(workload, keys=keys, records=times(workload.records))
    return workload


def ending_after(workload: Workload, ops: int) -> Workload:
    """This number of operations, and as many on the tape if it is played once; not of a fill."""
    if workload.fill_percent is not None:
        return workload
    records = ops if workload.records == workload.ops else workload.records
    return msgspec.structs.replace(workload, ops=ops, records=records, passes=None)


def filling_to(workload: Workload, percent: float) -> Workload:
    """A fill that ends at this part of the server's memory; any other workload as it is."""
    if workload.fill_percent is None:
        return workload
    return msgspec.structs.replace(workload, fill_percent=percent)


def max_keys_per_command(workload: Workload) -> int:
    """The largest number of keys in one mget or mset of a workload."""
    return max(workload.run, *(keys_in_range(step) or 0 for step in workload.sequence), 0)


def keys_in_range(step: str) -> int | None:
    """How many keys a step of a sequence names as a range: 6 for `mget@0-5`; None without one."""
    first, dash, last = step.partition("@")[2].partition("-")
    return int(last) - int(first) + 1 if dash else None
