"""Judges each answer by the values that the server can have stored at that time. Pure.

Each set of the tape writes another length, so the length of a value is its version.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from cachemark.model.call_log import Call, TapeData

# `right`: done, or a miss of a key that the server does not have. `stale`: a value that had been
# overwritten before the read began. `false miss`: a miss of a key that the server had.
CallAnswer = Literal[
    "right", "false miss", "stale", "wrong", "timeout", "connection", "server", "client", "protocol"
]
ERRORS: tuple[CallAnswer, ...] = ("timeout", "connection", "server", "client", "protocol")
_ALWAYS_NS = -1


class DataLoss(NamedTuple):
    """The time from which keys can be missing.

    The server lost all data at this time. With `keys_move`, a client of several servers may look
    for any key on another server at any time from then on.
    """

    from_ns: int
    keys_move: bool = False


class _Write(NamedTuple):
    begin_ns: int
    end_ns: int
    length: int
    done: bool


def judged_answers(
    calls: Sequence[Call], tape: TapeData, loss: DataLoss | None
) -> list[CallAnswer]:
    """The answer of each call, in the order of `calls`."""
    writes: dict[int, list[_Write]] = defaultdict(list)
    for call in calls:
        if call.is_write:
            done = call.outcome == "ok"
            writes[call.key].append(_Write(call.begin_ns, call.end_ns, call.length, done))
    return [_judged(call, writes[call.key], tape, loss) for call in calls]


def _judged(
    call: Call, writes: Sequence[_Write], tape: TapeData, loss: DataLoss | None
) -> CallAnswer:
    if call.outcome == "miss":
        return "right" if _may_be_absent(call, writes, loss) else "false miss"
    if call.outcome != "ok":
        return call.outcome
    if call.is_write:
        return "right"
    stored = _Write(_ALWAYS_NS, _ALWAYS_NS, tape.lengths[call.key], done=True)
    return _judged_version(call, [stored, *writes])


def _judged_version(call: Call, writes: Sequence[_Write]) -> CallAnswer:
    same = [w for w in writes if w.length == call.length and w.begin_ns <= call.end_ns]
    if not same:
        return "wrong"
    # A write that failed may still take effect at any later time.
    current = any(not w.done or not _overwritten(w, call, writes) for w in same)
    return "right" if current else "stale"


def _overwritten(write: _Write, read: Call, writes: Iterable[_Write]) -> bool:
    """Whether another write began after this one's end and was done before the read began."""
    return any(
        other.done and other.begin_ns > write.end_ns and other.end_ns < read.begin_ns
        for other in writes
    )


def _may_be_absent(call: Call, writes: Iterable[_Write], loss: DataLoss | None) -> bool:
    """Whether the key can be missing: it was lost, and no write since was done before."""
    if loss is None or call.end_ns < loss.from_ns:
        return False
    return loss.keys_move or not any(
        w.done and w.begin_ns >= loss.from_ns and w.end_ns < call.begin_ns for w in writes
    )


def describe_wrong(tape: TapeData, record: int, value: bytes) -> str:
    """The origin of a wrong value: another key, a part of the right one, or no key."""
    _, key, _ = tape.record(record)
    owners = [k for k in range(len(tape.lengths)) if tape.value(k, len(value)) == value]
    if value and owners:
        return f"the value of another key: {tape.key_name(owners[0])}"
    for length in tape.lengths_of(key):
        right = tape.value(key, length)
        if len(value) < length and right.startswith(value):
            return f"truncated: {len(value)} of {length} bytes"
        if value and right and value.startswith(right):
            return f"{len(value) - length} bytes too many"
    return "no value that was ever stored"
