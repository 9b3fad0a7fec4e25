"""The prefill, which stores every key before the window, and the length of a window that fills.

Without a prefill, gets would measure misses. How many operations fill a server to a part of its
memory, a first stretch of the tape shows: what an item takes in the server's own account. The
window plays the tape from its start, so those items are then written again, not besides. Asking the
server during the fill instead would overshoot by all that lies in the sockets.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.experiment import Workload
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats
from cachemark.model.work_length import records_of

# The part of the tape that is played first.
_SAMPLE = 0.02
_TIMEOUT = "timeout"
# The remedy for each kind of error. Any other is the server's own answer.
_REMEDIES = {
    _TIMEOUT: "a longer timing.timeout_ms, or fewer callers",
    "connection": "fewer connections: the server closed or refused some of them",
}
_LARGE_VALUES = "smaller values, or a server with a larger item limit"


def run_prefill(play: Callable[[], Done]) -> Done:
    """Play the prefill until all keys are stored; `play` plays it once.

    Nothing is timed yet, so after time-outs on a busy machine the prefill is played once more.
    Raises TrialError if keys are still missing.
    """
    done = play()
    if failures(done).keys() == {_TIMEOUT}:
        done = play()
    if found := failures(done):
        why = ", ".join(f"{count} × {kind}" for kind, count in found.items())
        raise TrialError(
            f"keys could not be stored before the window: {why}",
            "; ".join(dict.fromkeys(_REMEDIES.get(kind, _LARGE_VALUES) for kind in found)),
        )
    return done


def failures(prefill: Done) -> dict[str, int]:
    """The number of keys that were not stored, by kind of error."""
    counts: Counter[str] = Counter()
    for operation in prefill.operations.values():
        counts.update(operation.errors)
        counts["not stored"] += operation.attempts - operation.ok - sum(operation.errors.values())
    return {kind: count for kind, count in counts.items() if count}


class Storage(NamedTuple):
    """Bytes that a server holds, and may hold, by its own account."""

    used_bytes: int
    limit_bytes: int


def storage(stats: ServerStats) -> Storage:
    """Read both from `stats`. Raises UnsupportedError if the server does not report them."""
    used, limit = stats.number("bytes"), stats.number("limit_maxbytes")
    if used is None or limit is None:
        raise UnsupportedError("the server does not report bytes and limit_maxbytes")
    return Storage(used, limit)


def fill_sample_ops(workload: Workload) -> int:
    """The number of operations in the first stretch of the tape."""
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
