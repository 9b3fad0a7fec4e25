"""The summary of a cell's groups: whole repetitions of a sequence, such as one web request."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics.interval import Interval
from cachemark.model.protocol import Done, Operation


def group_length(windows: Sequence[Done]) -> int:
    """The number of operations in a group; 0 unless all windows have groups."""
    lengths = {window.groups.length if window.groups else 0 for window in windows}
    return lengths.pop() if len(lengths) == 1 else 0


def group_name(length: int) -> str:
    """How tables name groups, beside the kinds of operation."""
    return f"group of {length}"


def group_operations(window: Done) -> list[Operation]:
    """A window's groups as operations. In a closed loop, response and service time are the same."""
    groups = window.groups
    if groups is None:
        return []
    return [Operation(attempts=groups.ok, ok=groups.ok, response=groups.time, service=groups.time)]


def group_rate(operations: Interval, length: int) -> Interval:
    """Groups per second, from all operations per second: cut groups are part of the rate too."""

    def per_group(of: float | None) -> float | None:
        return None if of is None else of / length

    return msgspec.structs.replace(
        operations,
        value=operations.value / length,
        low=per_group(operations.low),
        high=per_group(operations.high),
    )
