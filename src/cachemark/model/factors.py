"""Is a factor's level what it says? Pure: from what was seen to an answer and its evidence.

A benchmark that compares two levels of a factor must know that they differ: that binary was
binary, that the non-blocking server did not block, that values were compressed, that the local
cache answered. Each function takes what was seen at the server's side and says `proved`, `void`
(the level is not what it says, so its figures are of something else) or `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from cachemark.model.server_stats import ServerStats

Answer = Literal["proved", "void", "unknown"]

_BINARY_REQUEST = 0x80
_STORING = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
_META = (b"mg", b"ms", b"md", b"ma", b"mn", b"me")
# The shortest answer to a store, `STORED`.
_REPLY_BYTES = 8
# Fewer connections than this could hide in the threads that a server has anyway.
_TELLING_CONNECTIONS = 8


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A factor's level, whether it is what it says, and the sentence that shows it."""

    factor: str
    level: str
    answer: Answer
    evidence: str


def wire(level: str, streams: Sequence[bytes]) -> Proof:
    """`text`, `binary` or `meta`, from the first bytes that each connection sent."""
    seen = [_wire_of(stream) for stream in streams if stream]
    if not seen:
        return Proof(factor="wire", level=level, answer="unknown", evidence="nothing was sent")
    counted = {name: seen.count(name) for name in dict.fromkeys(seen)}
    told = " and ".join(f"{count} of {len(seen)} spoke {name}" for name, count in counted.items())
    answer: Answer = "proved" if set(seen) == {level} else "void"
    first = next(stream for stream in streams if stream)[0]
    evidence = f"of the connections {told}; the first byte was 0x{first:02x}"
    return Proof(factor="wire", level=level, answer=answer, evidence=evidence)


def _wire_of(stream: bytes) -> str:
    if stream[0] == _BINARY_REQUEST:
        return "binary"
    return "meta" if any(verb in _META for verb in commands(stream)) else "text"


def commands(stream: bytes) -> Iterator[bytes]:
    """The verbs of a text stream, data blocks left out; the last may be cut short."""
    while stream:
        line, _, stream = stream.partition(b"\r\n")
        words = line.split()
        if not words:
            continue
        yield words[0]
        place = 4 if words[0] in _STORING else 2 if words[0] == b"ms" else None
        if place and len(words) > place and words[place].isdigit():
            stream = stream[int(words[place]) + 2 :]


def server_threads(level: str, connections: int, idle: int, busy: int) -> Proof:
    """`blocking`, or `events`, `uring`, `busy`, by its threads with and without connections."""
    rise = busy - idle
    evidence = f"{connections} connections took its threads from {idle} to {busy}"
    answer: Answer = "unknown"
    if connections < _TELLING_CONNECTIONS:
        evidence += "; too few for a decision"
    elif level == "blocking":
        # Threads that wait in a pool may serve connections without a new one being seen.
        pooled = idle > connections
        answer = "proved" if rise >= connections / 2 else "unknown" if pooled else "void"
    else:
        answer = "void" if rise >= connections / 2 else "proved"
    return Proof(factor="server threads", level=level, answer=answer, evidence=evidence)


def compression(
    level: str, value_bytes: int, items: int, before: ServerStats, after: ServerStats
) -> Proof:
    """`on` or `off`, from what the server holds after storing so many new items."""
    stored, grown = after.delta(before, "bytes"), after.delta(before, "curr_items")
    evidence, answer = "the server reports no bytes and curr_items", _unknown()
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
    """`on` or `off`, from the reads that came to the server for those that the client was asked."""
    came = after.delta(before, "cmd_get")
    if came is None:
        parts = [after.delta(before, name) for name in ("get_hits", "get_misses")]
        known = [part for part in parts if part is not None]
        came = sum(known) if len(known) == len(parts) else None
    if came is None or not keys_read:
        evidence = "nothing was read" if not keys_read else "the server does not count its reads"
        return Proof(factor="local cache", level=level, answer="unknown", evidence=evidence)
    answer: Answer = "proved" if (came < keys_read) == (level == "on") else "void"
    evidence = f"{keys_read} keys were read, and {came} of these reads reached the server"
    return Proof(factor="local cache", level=level, answer=answer, evidence=evidence)


def replies(level: str, operations: int, before: ServerStats, after: ServerStats) -> Proof:
    """`reply` or `noreply` of stores, from the bytes that the server wrote for so many."""
    written = after.delta(before, "bytes_written")
    if written is None or not operations:
        evidence = (
            "the server does not report what it wrote" if operations else "nothing was stored"
        )
        return Proof(factor="replies", level=level, answer="unknown", evidence=evidence)
    answered = written >= operations * _REPLY_BYTES
    answer: Answer = "proved" if answered == (level == "reply") else "void"
    evidence = f"the server wrote {written} bytes for {operations} stores"
    return Proof(factor="replies", level=level, answer=answer, evidence=evidence)


def _unknown() -> Answer:
    return "unknown"
