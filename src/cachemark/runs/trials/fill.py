"""How many operations fill a server to a part of its memory. Pure.

A first stretch of the tape shows what an item takes in the server's own account. The window plays
the tape from its start, so those items are then written again, not besides. Asking the server
during the fill instead would overshoot by all that lies in the sockets.
"""

from __future__ import annotations

from typing import NamedTuple

from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.experiment import Workload
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats
from cachemark.model.work_length import records_of

# The part of the tape that is played first.
_SAMPLE = 0.02


class Storage(NamedTuple):
    """Bytes that a server holds, and may hold, by its own account."""

    used_bytes: int
    limit_bytes: int


def storage(stats: ServerStats) -> Storage:
    """Read both from `stats`. Raises UnsupportedError where the server does not report them."""
    used, limit = stats.number("bytes"), stats.number("limit_maxbytes")
    if used is None or limit is None:
        raise UnsupportedError("the server tells no bytes and limit_maxbytes")
    return Storage(used, limit)


def fill_sample_ops(workload: Workload) -> int:
    """How many operations of the tape are played first."""
    return max(1, round(records_of(workload) * _SAMPLE))


def ops_to_fill(workload: Workload, sample: Done, before: Storage, after: Storage) -> int:
    """Return the operations that the fill needs, from a sample played between two readings.

    Raises TrialError where the sample took no room, or the tape is too short for the fill.
    """
    ops = sum(op.ok for op in sample.operations.values())
    each_bytes = (after.used_bytes - before.used_bytes) / ops if ops else 0
    if each_bytes <= 0:
        raise TrialError("the server's `bytes` do not grow as items are stored")
    needed = round((workload.fill_percent or 0) / 100 * after.limit_bytes / each_bytes)
    records = records_of(workload)
    if needed > records:
        raise TrialError(
            f"the tape holds {records} operations, the fill needs {needed}",
            "give the workload more keys and records",
        )
    return needed
