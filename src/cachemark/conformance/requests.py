"""What a client sends, cut into requests: text, meta and binary, whichever the first byte tells."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal

import msgspec

_BINARY = 0x80
_HEADER = struct.Struct(">BBHBBHIIQ")
# Opcodes: get, getq, getk, getkq, gat and its like; set and setq.
_BINARY_READS = frozenset({0x00, 0x09, 0x0C, 0x0D, 0x1D, 0x1E, 0x23, 0x24})
_BINARY_SETS = frozenset({0x01, 0x11})
_TEXT_READS = frozenset({b"get", b"gets", b"gat", b"gats", b"mg"})
_TEXT_STORES = frozenset({b"set", b"add", b"replace", b"append", b"prepend", b"cas"})
# A line of requests holds at most 1000 keys of 250 bytes, and then some.
_LONGEST_LINE_BYTES = 1 << 20


class Write(msgspec.Struct, frozen=True):
    """A `set` as it was sent."""

    key: bytes
    flags: int
    exptime_s: int
    value: bytes


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request: its bytes, whether it reads, and what it sets; `opaque` is the binary one's."""

    raw: bytes
    wire: Literal["text", "binary", "meta"]
    reads: bool = False
    write: Write | None = None
    opcode: int = 0
    opaque: int = 0


class NotARequest(Exception):  # noqa: N818
    """Bytes that no memcached client should send."""


class RequestReader:
    """Cuts a stream of bytes into requests."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Request]:
        """The requests that are whole now. Raises NotARequest."""
        self._bytes += data
        while (request := _first(self._bytes)) is not None:
            del self._bytes[: len(request.raw)]
            yield request


def _first(data: bytearray) -> Request | None:
    if not data:
        return None
    return _binary(data) if data[0] == _BINARY else _text(data)


def _binary(data: bytearray) -> Request | None:
    if len(data) < _HEADER.size:
        return None
    _, opcode, key_bytes, extra_bytes, _, _, body_bytes, opaque, _ = _HEADER.unpack_from(data)
    whole = _HEADER.size + body_bytes
    if len(data) < whole:
        return None
    extras_end = _HEADER.size + extra_bytes
    write = None
    if opcode in _BINARY_SETS:
        flags, exptime_s = struct.unpack_from(">II", data, _HEADER.size)
        value_at = extras_end + key_bytes
        key, value = bytes(data[extras_end:value_at]), bytes(data[value_at:whole])
        write = Write(key, flags, exptime_s, value)
    return Request(
        raw=bytes(data[:whole]),
        wire="binary",
        reads=opcode in _BINARY_READS,
        write=write,
        opcode=opcode,
        opaque=opaque,
    )


def _text(data: bytearray) -> Request | None:
    end = data.find(b"\n")
    if end < 0:
        if len(data) > _LONGEST_LINE_BYTES:
            raise NotARequest(f"a line of {len(data)} bytes")
        return None
    words = bytes(data[:end]).split()
    verb = words[0] if words else b""
    wire: Literal["text", "meta"] = "meta" if len(verb) == 2 and verb[:1] == b"m" else "text"
    length = _data_length(verb, words)
    whole = end + 1 + (0 if length is None else length + 2)
    if len(data) < whole:
        return None
    value = bytes(data[end + 1 : whole - 2])
    return Request(
        raw=bytes(data[:whole]),
        wire=wire,
        reads=verb in _TEXT_READS,
        write=_write(verb, words, value),
    )


def _data_length(verb: bytes, words: list[bytes]) -> int | None:
    """Bytes of the data block that follows the line, without its line end."""
    try:
        if verb in _TEXT_STORES:
            return int(words[4])
        return int(words[2]) if verb == b"ms" else None
    except (IndexError, ValueError) as error:
        raise NotARequest(b" ".join(words).decode(errors="replace")) from error


def _write(verb: bytes, words: list[bytes], value: bytes) -> Write | None:
    if verb == b"set":
        return Write(words[1], int(words[2]), int(words[3]), value)
    if verb != b"ms":
        return None
    marks = {word[:1]: word[1:] for word in words[3:]}
    if marks.get(b"M", b"S").upper()[:1] != b"S":
        return None
    return Write(words[1], int(marks.get(b"F", b"0")), int(marks.get(b"T", b"0")), value)
