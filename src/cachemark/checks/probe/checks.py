"""Checks that are more than a dialogue: segments, binary, sizes, counters."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

import msgspec

from cachemark.checks.probe.dialogue import Subject
from cachemark.checks.probe.finding import CONSERVATION, EVERYTHING, PIPELINE, Finding
from cachemark.checks.probe.raw_connection import AnswerError, Wire, shown
from cachemark.endpoints.servers import RunningServer
from cachemark.model.errors import TrialError
from cachemark.model.server_stats import ServerStats

# Long enough for a server to have read the first segment before the second is sent.
_APART_S = 0.05
_VALUE_SIZES = (100_000, 1_000_000, 1 << 20, 4 << 20)
_VALUE_SIZE_WANTED = 1_000_000
_MANY_KEYS = 100
_GET, _SET, _VERSION = 0x00, 0x01, 0x0B
_OPCODES = {_GET: "get", _SET: "set", _VERSION: "version"}
_NOT_FOUND = 1


def storing(address: str) -> tuple[Finding, Subject]:
    """Whether anything can be stored; with a space before the line end where it must be so."""
    refused = ""
    for space in (b"", b" "):
        subject = Subject(address, space)
        try:
            with subject.keys(["a"]) as keys, Wire(address) as wire:
                subject.store(wire, keys["a"], b"hello")
        except AnswerError as error:
            refused = refused or str(error)
            continue
        return _stored(refused), subject
    return Finding(
        name="set",
        fit=False,
        seen=refused,
        means="nothing can be stored, so the server cannot be measured",
        excludes=[EVERYTHING],
    ), Subject(address)


def _stored(refused: str) -> Finding:
    if not refused:
        return Finding(name="set", fit=True, seen="as it should be")
    return Finding(
        name="set",
        fit=False,
        seen=f"{refused}; with a space before the line end it is stored",
        means="only clients that can send this space can be measured; memcached accepts it too",
        quirk="trailing_space",
    )


def split_segments(subject: Subject) -> Finding:
    """A set's line and data in two segments, and another command right behind the data."""
    name = "set in two segments with a command behind"
    with subject.keys(["a"]) as keys:
        key = keys["a"]
        whole = rb"STORED\r\nVALUE %s 0 5( \d+)?\r\nhello\r\nEND\r\n" % key
        try:
            with Wire(subject.address) as wire:
                wire.send(b"set %s 0 0 5%s\r\n" % (key, subject.space))
                time.sleep(_APART_S)
                wire.send(b"hello\r\nget %s\r\n" % key)
                try:
                    wire.expect(whole)
                except AnswerError as error:
                    raise AnswerError(f"{error}{_released(wire)}") from error
        except AnswerError as error:
            return Finding(
                name=name,
                fit=False,
                seen=str(error),
                means="pipelined operations stall until more bytes are sent",
                excludes=[PIPELINE],
            )
    return Finding(name=name, fit=True, seen="as it should be")


def _released(wire: Wire) -> str:
    """What more bytes bring out of a server that has stalled."""
    try:
        wire.ask(b"version\r\n", rb".*VERSION [^\r]*\r\n")
    except AnswerError:
        return ", and nothing more"
    return "; the rest only once more was sent"


def many_keys(subject: Subject) -> Finding:
    """A get of a hundred keys."""
    name = f"get of {_MANY_KEYS} keys"
    names = [str(number) for number in range(_MANY_KEYS)]
    with subject.keys(names) as keys:
        try:
            with Wire(subject.address) as wire:
                for key in keys.values():
                    subject.store(wire, key, b"hello")
                request = b"get " + b" ".join(keys.values()) + b"\r\n"
                hit = rb"VALUE [^ ]+ 0 5( \d+)?\r\nhello\r\n"
                wire.ask(request, rb"(%s){%d}END\r\n" % (hit, _MANY_KEYS))
        except AnswerError as error:
            return Finding(
                name=name,
                fit=False,
                seen=str(error),
                means="multi-get of many keys cannot be measured",
                excludes=["mget"],
            )
    return Finding(name=name, fit=True, seen="as it should be")


def value_sizes(subject: Subject) -> Finding:
    """How large a value may be."""
    most, why = 0, ""
    for size in _VALUE_SIZES:
        with subject.keys(["a"]) as keys:
            try:
                with Wire(subject.address) as wire:
                    subject.store(wire, keys["a"], b"v" * size)
            except AnswerError as error:
                why = f"; {size:,} bytes: {error}"
                break
        most = size
    fit = most >= _VALUE_SIZE_WANTED
    return Finding(
        name="large values",
        fit=fit,
        seen=f"{most:,} bytes are stored{why}",
        means="" if fit else "larger values cannot be measured: they fail",
    )


def binary(subject: Subject) -> Finding:
    """The binary protocol: version, set, get, and a get that misses."""
    with subject.keys(["a", "x"]) as keys:
        try:
            with Wire(subject.address) as wire:
                _binary(wire, _Packet(opcode=_VERSION))
                flags_exptime = bytes(8)
                stored = _Packet(opcode=_SET, key=keys["a"], extras=flags_exptime, value=b"hello")
                _binary(wire, stored)
                held = _binary(wire, _Packet(opcode=_GET, key=keys["a"]))
                if not held.endswith(b"hello"):
                    raise AnswerError(f"get answered {shown(held)}")
                _binary(wire, _Packet(opcode=_GET, key=keys["x"]), status=_NOT_FOUND)
        except AnswerError as error:
            return Finding(
                name="binary protocol",
                fit=False,
                seen=str(error),
                means="the binary protocol cannot be measured",
                excludes=["binary"],
            )
    return Finding(name="binary protocol", fit=True, seen="answers begin with 0x81")


class _Packet(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the binary protocol."""

    opcode: int
    key: bytes = b""
    extras: bytes = b""
    value: bytes = b""

    def encoded(self) -> bytes:
        body = self.extras + self.key + self.value
        sizes = (len(self.key), len(self.extras), 0, 0, len(body))
        return struct.pack(">BBHBBHIIQ", 0x80, self.opcode, *sizes, 0, 0) + body


def _binary(wire: Wire, packet: _Packet, status: int = 0) -> bytes:
    """The body of the answer. Raises AnswerError, which names the request."""
    try:
        return _exchanged(wire, packet, status)
    except AnswerError as error:
        raise AnswerError(f"{_OPCODES[packet.opcode]}: {error}") from error


def _exchanged(wire: Wire, packet: _Packet, status: int) -> bytes:
    wire.send(packet.encoded())
    head = wire.take(24)
    if head[0] != 0x81 or head[1] != packet.opcode:
        raise AnswerError(f"answered {shown(head)}")
    body = wire.take(int.from_bytes(head[8:12], "big"))
    told = int.from_bytes(head[6:8], "big")
    if told != status:
        raise AnswerError(f"answered with status {told}: {shown(body)}")
    return body


# What the check of counters does, and by how much each counter of `stats` then must rise.
_RISE = {
    "cmd_set": 3,
    "cmd_get": 3,
    "get_hits": 2,
    "get_misses": 1,
    "delete_hits": 1,
    "delete_misses": 1,
}


def counters(subject: Subject, server: RunningServer) -> Finding:
    """Whether the server's own counts can be held against a client's."""
    name = "counters"
    try:
        before = server.stats()
        with subject.keys(["a", "b", "x"]) as keys, Wire(subject.address) as wire:
            for key in (keys["a"], keys["a"], keys["b"]):
                subject.store(wire, key, b"hello")
            for key in (keys["a"], keys["b"]):
                wire.send(b"get %s\r\n" % key)
                _read(wire, key)
            wire.ask(b"get %s\r\n" % keys["x"], rb"END\r\n")
            for key, answer in ((keys["a"], rb"DELETED\r\n"), (keys["x"], rb"NOT_FOUND\r\n")):
                wire.ask(b"delete %s%s\r\n" % (key, subject.space), answer)
            after = server.stats()
    except (AnswerError, TrialError) as error:
        return Finding(
            name=name,
            fit=False,
            seen=str(error),
            means="a client's counts cannot be held against the server's",
            excludes=[CONSERVATION],
        )
    return judge_counters(before, after)


def judge_counters(before: ServerStats, after: ServerStats) -> Finding:
    """What `stats` made of three sets, two hits, a miss, a delete and one of nothing. Pure."""
    rises = {name: after.delta(before, name) for name in _RISE}
    wrong = [
        f"{name} rose by {rise} for {_RISE[name]}"
        for name, rise in rises.items()
        if rise is not None and rise != _RISE[name]
    ]
    untold = [name for name, rise in rises.items() if rise is None]
    seen = [*wrong, *([f"does not report {', '.join(untold)}"] if untold else [])]
    blind = "get_hits" in untold
    return Finding(
        name="counters",
        fit=not (wrong or blind),
        seen="; ".join(seen) or "count what was done",
        means="a client's counts cannot be held against the server's" if wrong or blind else "",
        excludes=[CONSERVATION] if wrong or blind else [],
    )


def _read(wire: Wire, key: bytes) -> None:
    wire.expect(rb"VALUE %s 0 5( \d+)?\r\nhello\r\nEND\r\n" % key)


# Each with what it excludes on a server that fails it.
SUBJECT_CHECKS: tuple[tuple[str, Callable[[Subject], Finding]], ...] = (
    (PIPELINE, split_segments),
    ("mget", many_keys),
    ("", value_sizes),
    ("binary", binary),
)
