"""Checks which items a full server evicts, on a small server that the probe starts."""

from cachemark.endpoints.probe.dialogue import ProbedServer, unfit
from cachemark.endpoints.probe.raw_connection import AnswerError, RawConnection
from cachemark.endpoints.servers import RunningServer
from cachemark.model.audit import EVICTIONS, ProbeResult
from cachemark.model.errors import TrialError

_VALUE_BYTES = 10_000
_BATCH = 20
_SAMPLE = 50
# A larger server would take too long to fill.
_MAX_LIMIT_BYTES = 64 << 20
_NAME = "eviction"


def eviction(server: RunningServer, space: bytes) -> ProbeResult:
    """Write twice as much as fits, then check which of the oldest and newest items are left."""
    try:
        limit = server.stats().number("limit_maxbytes")
    except TrialError:
        limit = None
    if limit is None:
        return eviction_unknown("the server reports no limit_maxbytes")
    if not 0 < limit <= _MAX_LIMIT_BYTES:
        return eviction_unknown(f"its limit is {limit:,} bytes, too much for a probe to fill")
    try:
        return _filled(server, space, 2 * limit // _VALUE_BYTES)
    except (AnswerError, TrialError) as error:
        means = "nothing can be measured when it is full"
        return unfit(_NAME, f"while it was filled: {error}", means, EVICTIONS)


def _filled(server: RunningServer, space: bytes, count: int) -> ProbeResult:
    probed = ProbedServer(server.addresses[0], space)
    keys = [probed.key("e") for _ in range(count)]
    value = b"v" * _VALUE_BYTES
    with probed.connection() as connection:
        for start in range(0, count, _BATCH):
            batch = keys[start : start + _BATCH]
            connection.send(
                b"".join(
                    b"set %s 0 0 %d%s\r\n%s\r\n" % (key, len(value), space, value) for key in batch
                )
            )
            connection.expect(rb"(STORED\r\n){%d}" % len(batch))
            _holds(connection, keys[0])
        sample = min(_SAMPLE, count // 4)
        read = _holds(connection, keys[0])
        oldest = sum(_holds(connection, key) for key in keys[1 : 1 + sample])
        newest = sum(_holds(connection, key) for key in keys[-sample:])
    return judge(sample, oldest, newest, read=read)


def _holds(connection: RawConnection, key: bytes) -> bool:
    hit = rb"VALUE [^ ]+ 0 %d( \d+)?\r\nv{%d}\r\n" % (_VALUE_BYTES, _VALUE_BYTES)
    return len(connection.ask(b"get %s\r\n" % key, rb"(%s)?END\r\n" % hit)[0]) > _VALUE_BYTES


def judge(sample: int, oldest: int, newest: int, *, read: bool) -> ProbeResult:
    """Judge the numbers of items that are left. Pure.

    `read`: the very oldest item, which was read all along, is left too.
    """
    seen = (
        f"after twice its capacity was written, {oldest} of the {sample} oldest items and "
        f"{newest} of the {sample} newest items are left; the one that was read all the time "
        f"is {'left' if read else 'gone'}"
    )
    if oldest == newest == sample:
        return eviction_unknown(f"{seen}: it does not evict at once")
    if newest >= 0.9 * sample and oldest <= 0.5 * sample:
        return ProbeResult(name=_NAME, fit=True, seen=seen)
    order = "the newest items" if oldest > newest else "items whatever their age"
    means = f"it evicts {order}: nothing can be measured when it is full"
    return unfit(_NAME, seen, means, EVICTIONS)


def eviction_unknown(why: str) -> ProbeResult:
    """The result if eviction could not be checked."""
    means = "its behaviour when it is full is unknown"
    return ProbeResult(name=_NAME, fit=None, seen=why, means=means)
