"""Conservation of bytes: the client's count of sent and received bytes, against the server's.

Every key and value of an operation that succeeded has crossed the server's sockets. Protocols only
add to that. So the bounds hold for text, meta, binary and TLS.
"""

from collections.abc import Iterator
from typing import NamedTuple

from cachemark.analysis.verdict.trial_verdict import invalid_finding, note_finding
from cachemark.model.experiment import Load
from cachemark.model.outcome import Finding
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats

_READS = frozenset({"get", "gets", "mget", "gat"})
# A fetch sends a value or gets one, and only the sum is known.
_EITHER = "fetch"
# A server adds a reply to its count after it was sent: of each operation that was outstanding last,
# the reply can be missing. Values differ in length, so a reply has up to this many mean lengths.
_REPLY_MEANS = 4
# How much more than keys and values a client may send: a share, for each key and operation (its
# command, flags, numbers, and TLS), for each connection that is opened, and in all (`stats`).
_MORE_SHARE = 0.05
_MORE_EACH_BYTES = 150
_MORE_CONNECTION_BYTES = 8192
_MORE_BYTES = 65536


class _Told(NamedTuple):
    """Bytes and numbers of all operations that succeeded, by the client's account."""

    keys: int
    sent: int
    got: int
    either: int
    # Keys and operations: each may take bytes beside its key and value.
    items: int
    # Operations that bring values.
    reads: int


def byte_findings(
    measure: Done,
    load: Load,
    before: ServerStats,
    after: ServerStats,
    *,
    shared_server: bool,
    merges: bool,
) -> Iterator[Finding]:
    """Findings about `bytes_read` and `bytes_written` that the client's account cannot explain.

    The client must send keys and values as they are on the tape. Other arguments as in `judge`.
    """
    told = _told(measure)
    writes = _told(measure, without=_READS) if merges else told
    read, written = (after.delta(before, name) for name in ("bytes_read", "bytes_written"))
    least = writes.keys + writes.sent
    if read is not None and read < least:
        text = f"the server's bytes_read rose by {read}, the client sent {least} of keys and values"
        yield invalid_finding("server-bytes", text)
    most = _most_sent(measure, told)
    if read is not None and most is not None and read > most:
        text = (
            f"the server's bytes_read rose by {read}, the client sent {told.keys + told.sent} of "
            "keys and values"
        )
        yield (note_finding if shared_server else invalid_finding)("server-bytes", text)
    least = told.got - _late_replies(told, load)
    if written is not None and written < least:
        text = f"the server's bytes_written rose by {written}, the client got {told.got} of values"
        yield (note_finding if merges else invalid_finding)("server-bytes", text)


def _told(measure: Done, without: frozenset[str] = frozenset()) -> _Told:
    keys = sent = got = either = items = reads = 0
    for kind, operation in measure.operations.items():
        verb = kind.removesuffix("_noreply")
        if verb in without:
            continue
        keys += operation.key_bytes
        items += operation.keys + operation.attempts
        if verb in _READS:
            got += operation.value_bytes
            reads += operation.ok
        elif verb == _EITHER:
            either += operation.value_bytes
        else:
            sent += operation.value_bytes
    return _Told(keys=keys, sent=sent, got=got, either=either, items=items, reads=reads)


def _most_sent(measure: Done, told: _Told) -> int | None:
    """The most that the client can have sent; None if it cannot be known.

    No counter has the bytes of an operation that failed or stored nothing.
    """
    if any(of.ok < of.attempts or of.not_stored > 0 for of in measure.operations.values()):
        return None
    # A cas sends its key twice, and a fetch that misses does, too.
    payload = 2 * told.keys + told.sent + told.either
    opened = measure.renewed + measure.reconnects
    more = _MORE_EACH_BYTES * told.items + _MORE_CONNECTION_BYTES * opened + _MORE_BYTES
    return round(payload * (1 + _MORE_SHARE)) + more


def _late_replies(told: _Told, load: Load) -> int:
    """The bytes of replies that the server may not have counted yet."""
    if not told.reads:
        return 0
    callers = load.processes * max(load.threads, load.connections or 0) * load.depth
    return round(min(callers, told.reads) * _REPLY_MEANS * told.got / told.reads)
