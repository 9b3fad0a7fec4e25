"""Checks that are not simple dialogues: TCP segments, binary protocol, value sizes, counters."""

import time
from collections.abc import Callable

import msgspec

from cachemark.endpoints.probe.dialogue import ProbedServer, talked, unfit
from cachemark.endpoints.probe.raw_connection import AnswerError, RawConnection, printable
from cachemark.endpoints.servers import RunningServer
from cachemark.endpoints.servers.binary_control import HEADER
from cachemark.model.audit import CONSERVATION, EVERYTHING, PIPELINE, ProbeResult
from cachemark.model.errors import TrialError
from cachemark.model.server_stats import ServerStats

# Long enough for the server to read the first segment before the second is sent.
_APART_S = 0.05
_VALUE_SIZES = (100_000, 1_000_000, 1 << 20, 4 << 20)
_VALUE_SIZE_WANTED = 1_000_000
_MANY_KEYS = 100
_GET, _SET, _VERSION = 0x00, 0x01, 0x0B
_OPCODES = {_GET: "get", _SET: "set", _VERSION: "version"}
_NOT_FOUND = 1


def check_storing(address: str) -> tuple[ProbeResult, ProbedServer]:
    """Check `set`; if it fails, also with a space before the line end."""
    refused = ""
    for space in (b"", b" "):
        probed = ProbedServer(address, space)
        try:
            with probed.keys(["a"]) as keys, probed.connection() as connection:
                probed.store(connection, keys["a"], b"hello")
        except AnswerError as error:
            refused = refused or str(error)
            continue
        return _stored(refused), probed
    means = "nothing can be stored, so the server cannot be measured"
    return unfit("set", refused, means, EVERYTHING), ProbedServer(address)


def _stored(refused: str) -> ProbeResult:
    if not refused:
        return ProbeResult(name="set", fit=True, seen="as it should be")
    return ProbeResult(
        name="set",
        fit=False,
        seen=f"{refused}; with a space before the line end it is stored",
        means="only clients that can send this space can be measured; memcached accepts it too",
        quirk="trailing_space",
    )


def split_segments(probed: ProbedServer) -> ProbeResult:
    """Check a set whose line and data are in two segments, with another command after the data."""

    def talk() -> None:
        with probed.keys(["a"]) as keys, probed.connection() as connection:
            key = keys["a"]
            connection.send(b"set %s 0 0 5%s\r\n" % (key, probed.space))
            time.sleep(_APART_S)
            connection.send(b"hello\r\nget %s\r\n" % key)
            try:
                connection.expect(rb"STORED\r\nVALUE %s 0 5( \d+)?\r\nhello\r\nEND\r\n" % key)
            except AnswerError as error:
                raise AnswerError(f"{error}{_released(connection)}") from error

    name = "set in two segments with a command behind"
    return talked(name, talk, "pipelined operations stall until more bytes are sent", PIPELINE)


def _released(connection: RawConnection) -> str:
    """Whether a stalled server answers after it has received more bytes, as text."""
    try:
        connection.ask(b"version\r\n", rb"([^\n]*\n)*VERSION [^\r\n]*\r\n")
    except AnswerError:
        return ", and nothing more"
    return "; the rest only once more was sent"


def many_keys(probed: ProbedServer) -> ProbeResult:
    """Check a get of a hundred keys."""

    def talk() -> None:
        names = [str(number) for number in range(_MANY_KEYS)]
        with probed.keys(names) as keys, probed.connection() as connection:
            for key in keys.values():
                probed.store(connection, key, b"hello")
            request = b"get " + b" ".join(keys.values()) + b"\r\n"
            hit = rb"VALUE [^ ]+ 0 5( \d+)?\r\nhello\r\n"
            connection.ask(request, rb"(%s){%d}END\r\n" % (hit, _MANY_KEYS))

    means = "multi-get of many keys cannot be measured"
    return talked(f"get of {_MANY_KEYS} keys", talk, means, "mget")


def value_sizes(probed: ProbedServer) -> ProbeResult:
    """Check how large a value may be."""
    most, why = 0, ""
    for size in _VALUE_SIZES:
        with probed.keys(["a"]) as keys:
            try:
                with probed.connection() as connection:
                    probed.store(connection, keys["a"], b"v" * size)
            except AnswerError as error:
                why = f"; {size:,} bytes: {error}"
                break
        most = size
    fit = most >= _VALUE_SIZE_WANTED
    return ProbeResult(
        name="large values",
        fit=fit,
        seen=f"{most:,} bytes are stored{why}",
        means="" if fit else "larger values cannot be measured: they fail",
    )


def binary(probed: ProbedServer) -> ProbeResult:
    """Check the binary protocol: version, set, get, and a get that misses."""

    def talk() -> None:
        with probed.keys(["a", "x"]) as keys, probed.connection() as connection:
            _binary(connection, _Packet(opcode=_VERSION))
            flags_exptime = bytes(8)
            stored = _Packet(opcode=_SET, key=keys["a"], extras=flags_exptime, value=b"hello")
            _binary(connection, stored)
            held = _binary(connection, _Packet(opcode=_GET, key=keys["a"]))
            if not held.endswith(b"hello"):
                raise AnswerError(f"get answered {printable(held)}")
            _binary(connection, _Packet(opcode=_GET, key=keys["x"]), status=_NOT_FOUND)

    found = talked("binary protocol", talk, "the binary protocol cannot be measured", "binary")
    return msgspec.structs.replace(found, seen="answers begin with 0x81") if found.fit else found


class _Packet(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the binary protocol."""

    opcode: int
    key: bytes = b""
    extras: bytes = b""
    value: bytes = b""

    def encoded(self) -> bytes:
        body = self.extras + self.key + self.value
        sizes = (len(self.key), len(self.extras), 0, 0, len(body))
        return HEADER.pack(0x80, self.opcode, *sizes, 0, 0) + body


def _binary(connection: RawConnection, packet: _Packet, status: int = 0) -> bytes:
    """Send a request; returns the body of the reply. Raises AnswerError with the verb."""
    try:
        return _exchanged(connection, packet, status)
    except AnswerError as error:
        raise AnswerError(f"{_OPCODES[packet.opcode]}: {error}") from error


def _exchanged(connection: RawConnection, packet: _Packet, status: int) -> bytes:
    connection.send(packet.encoded())
    head = connection.receive(24)
    if head[0] != 0x81 or head[1] != packet.opcode:
        raise AnswerError(f"answered {printable(head)}")
    body = connection.receive(int.from_bytes(head[8:12], "big"))
    received_status = int.from_bytes(head[6:8], "big")
    if received_status != status:
        raise AnswerError(f"answered with status {received_status}: {printable(body)}")
    return body


# By how much each counter of `stats` must rise in the check of the counters.
_RISE = {
    "cmd_set": 3,
    "cmd_get": 3,
    "get_hits": 2,
    "get_misses": 1,
    "delete_hits": 1,
    "delete_misses": 1,
}

# Longer than the replies to `stats`, whose bytes are counted too.
_COUNTED = b"hello" * 2000
# By how much the counters of bytes must rise at least: the values of 3 sets, and of 2 hits.
_LEAST_RISE = {"bytes_read": 3 * len(_COUNTED), "bytes_written": 2 * len(_COUNTED)}


_NOT_COMPARED = "a client's counts cannot be compared with the server's"


def counters(probed: ProbedServer, server: RunningServer) -> ProbeResult:
    """Check the server's counters, which verify the counts of clients."""
    try:
        before = server.stats()
        with probed.keys(["a", "b", "x"]) as keys, probed.connection() as connection:
            for key in (keys["a"], keys["a"], keys["b"]):
                probed.store(connection, key, _COUNTED)
            for key in (keys["a"], keys["b"]):
                connection.send(b"get %s\r\n" % key)
                _read(connection, key)
            connection.ask(b"get %s\r\n" % keys["x"], rb"END\r\n")
            for key, answer in ((keys["a"], rb"DELETED\r\n"), (keys["x"], rb"NOT_FOUND\r\n")):
                connection.ask(b"delete %s%s\r\n" % (key, probed.space), answer)
            after = server.stats()
    except TrialError as error:
        means = "no trial can be judged: each reads `stats` before and after its window"
        return unfit("counters", str(error), means, EVERYTHING)
    except AnswerError as error:
        return unfit("counters", str(error), _NOT_COMPARED, CONSERVATION)
    return judge_counters(before, after)


def judge_counters(before: ServerStats, after: ServerStats) -> ProbeResult:
    """Judge the counters after 3 sets, 2 hits, a miss, a delete, and a delete of nothing. Pure."""
    if not after:
        return unfit("counters", "the server does not know `stats`", _NOT_COMPARED, CONSERVATION)
    rises = {name: after.delta(before, name) for name in _RISE}
    wrong = [
        f"{name} rose by {rise} for {_RISE[name]}"
        for name, rise in rises.items()
        if rise is not None and rise != _RISE[name]
    ]
    true_bytes, wrong_bytes = _bytes_counted(before, after)
    wrong += wrong_bytes
    untold = [name for name, rise in rises.items() if rise is None]
    seen = [*wrong, *([f"does not report {', '.join(untold)}"] if untold else [])]
    true = [name for name, rise in rises.items() if rise == _RISE[name]]
    true += true_bytes
    if after.delta(before, "total_connections") == 1:
        true.append("total_connections")
    told = "; ".join(seen) or "count what was done"
    if not wrong and "get_hits" not in untold:
        return ProbeResult(name="counters", fit=True, seen=told)
    found = unfit("counters", told, _NOT_COMPARED, CONSERVATION)
    return msgspec.structs.replace(found, true_counters=true)


def _bytes_counted(before: ServerStats, after: ServerStats) -> tuple[list[str], list[str]]:
    """The plausible counters of bytes, and a text about each wrong one."""
    rises = {name: after.delta(before, name) for name in _LEAST_RISE}
    told = {name: rise for name, rise in rises.items() if rise is not None}
    wrong = {name: rise for name, rise in told.items() if rise < _LEAST_RISE[name]}
    texts = [f"{name} rose by {wrong[name]} for {_LEAST_RISE[name]} bytes" for name in wrong]
    return [name for name in told if name not in wrong], texts


def _read(connection: RawConnection, key: bytes) -> None:
    connection.expect(rb"VALUE %s 0 %d( \d+)?\r\n%s\r\nEND\r\n" % (key, len(_COUNTED), _COUNTED))


# Each check, with the kinds and ways of use that its failure excludes.
SERVER_CHECKS: tuple[tuple[str, Callable[[ProbedServer], ProbeResult]], ...] = (
    (PIPELINE, split_segments),
    ("mget", many_keys),
    ("", value_sizes),
    ("binary", binary),
)
