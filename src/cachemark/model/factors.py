"""Did a factor's level really take effect? Pure: observations in, a conclusion with evidence out.

A factor is a setting that an experiment varies, such as the wire protocol; a level is one of its
values. A benchmark that compares two levels must check that they differ: that "binary" sent binary
requests, that values were compressed, that the local cache answered. Each function takes
observations at the server and returns `proved`, `void` (the level did not take effect, so its
results describe something else) or `unknown`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from cachemark.model.server_stats import ServerStats

ProofAnswer = Literal["proved", "void", "unknown"]

_BINARY_REQUEST = 0x80
_STORING = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
_META = (b"mg", b"ms", b"md", b"ma", b"mn", b"me")
# The length of the shortest reply to a store: `STORED` and the line end.
_REPLY_BYTES = 8
# With fewer connections, a thread per connection would look like a pool of threads.
_MIN_CONNECTIONS = 8


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a factor's level took effect, and the observation that shows it."""

    factor: str
    level: str
    answer: ProofAnswer
    evidence: str


def wire(level: str, streams: Sequence[bytes]) -> Proof:
    """Checks `text`, `binary` or `meta` by the first bytes that each connection sent."""
    seen = [_wire_of(stream) for stream in streams if stream]
    if not seen:
        return Proof(factor="wire", level=level, answer="unknown", evidence="nothing was sent")
    counted = {name: seen.count(name) for name in dict.fromkeys(seen)}
    counts = " and ".join(f"{count} of {len(seen)} spoke {name}" for name, count in counted.items())
    answer: ProofAnswer = "proved" if set(seen) == {level} else "void"
    first = next(stream for stream in streams if stream)[0]
    evidence = f"of the connections {counts}; the first byte was 0x{first:02x}"
    return Proof(factor="wire", level=level, answer=answer, evidence=evidence)


def _wire_of(stream: bytes) -> str:
    if stream[0] == _BINARY_REQUEST:
        return "binary"
    return "meta" if any(verb in _META for verb in commands(stream)) else "text"


def commands(stream: bytes) -> Iterator[bytes]:
    """The verbs in a text-protocol stream, without data blocks. The last may be truncated."""
    while stream:
        line, _, stream = stream.partition(b"\r\n")
        words = line.split()
        if not words:
            continue
        yield words[0]
        place = 4 if words[0] in _STORING else 2 if words[0] == b"ms" else None
        if place and len(words) > place and re.fullmatch(rb"[0-9]{1,10}", words[place]):
            stream = stream[int(words[place]) + 2 :]


def server_threads(level: str, connections: int, idle: int, busy: int) -> Proof:
    """Checks `blocking`, `events`, `uring` or `busy` by the server's number of threads.

    `idle` is the number without connections, `busy` the number with `connections`.
    """
    rise = busy - idle
    evidence = f"{connections} connections took its threads from {idle} to {busy}"
    answer: ProofAnswer = "unknown"
    if connections < _MIN_CONNECTIONS:
        evidence += "; too few for a decision"
    elif level == "blocking":
        # A pool that had enough idle threads may serve the connections without a new thread.
        pooled = idle > connections
        answer = "proved" if rise >= connections / 2 else "unknown" if pooled else "void"
    else:
        answer = "void" if rise >= connections / 2 else "proved"
    return Proof(factor="server threads", level=level, answer=answer, evidence=evidence)


def compression(
    level: str, value_bytes: int, items: int, before: ServerStats, after: ServerStats
) -> Proof:
    """Checks `on` or `off` by the growth of the server's `bytes`.

    `value_bytes` is the total size of the values of the `items` new items.
    """
    stored, grown = after.delta(before, "bytes"), after.delta(before, "curr_items")
    evidence, answer = "the server reports no bytes and curr_items", "unknown"
    if stored is not None and grown is not None:
        evidence = (
            f"{value_bytes} value bytes in {items} items took {stored} bytes of the server, "
            f"keys and overhead included"
        )
        if grown != items:
            evidence = f"the server's curr_items rose by {grown} for {items} new items"
        else:
            answer = "proved" if (stored < value_bytes) == (level == "on") else "void"
    return Proof(factor="compression", level=level, answer=answer, evidence=evidence)


def local_cache(level: str, keys_read: int, before: ServerStats, after: ServerStats) -> Proof:
    """Checks `on` or `off` by how many of the `keys_read` reads reached the server."""
    came = after.delta(before, "cmd_get")
    if came is None:
        hits, misses = after.delta(before, "get_hits"), after.delta(before, "get_misses")
        came = None if hits is None or misses is None else hits + misses
    if came is None or not keys_read:
        evidence = "nothing was read" if not keys_read else "the server does not count its reads"
        return Proof(factor="local cache", level=level, answer="unknown", evidence=evidence)
    answer: ProofAnswer = "proved" if (came < keys_read) == (level == "on") else "void"
    evidence = f"{keys_read} keys were read, and {came} of these reads reached the server"
    return Proof(factor="local cache", level=level, answer=answer, evidence=evidence)


def replies(level: str, operations: int, written: int | None) -> Proof:
    """Checks `reply` or `noreply` of stores by the bytes that the server wrote for them."""
    if written is None or not operations:
        evidence = (
            "the server does not report what it wrote" if operations else "nothing was stored"
        )
        return Proof(factor="replies", level=level, answer="unknown", evidence=evidence)
    answered = written >= operations * _REPLY_BYTES
    answer: ProofAnswer = "proved" if answered == (level == "reply") else "void"
    evidence = f"the server wrote {written} bytes for {operations} stores"
    return Proof(factor="replies", level=level, answer=answer, evidence=evidence)
