"""Splits the bytes that a client sends into requests: text, meta or binary, by the first byte.

The commands of a request have one form for all three protocols; there is one command per key.
"""

import struct
from collections.abc import Iterator
from typing import Literal

import msgspec

from cachemark.endpoints.servers.binary_control import HEADER

_BINARY = 0x80
# By opcode: the verb, and whether it is quiet (no reply).
_OPCODES = {
    0x00: ("get", False), 0x09: ("get", True), 0x0C: ("get", False), 0x0D: ("get", True),
    0x01: ("set", False), 0x11: ("set", True), 0x02: ("add", False), 0x12: ("add", True),
    0x03: ("replace", False), 0x13: ("replace", True), 0x04: ("delete", False),
    0x14: ("delete", True), 0x05: ("incr", False), 0x15: ("incr", True), 0x06: ("decr", False),
    0x16: ("decr", True), 0x1C: ("touch", False), 0x1D: ("gat", False), 0x1E: ("gat", True),
    0x23: ("gat", False), 0x24: ("gat", True), 0x0E: ("append", False), 0x19: ("append", True),
    0x0F: ("prepend", False), 0x1A: ("prepend", True),
}  # fmt: skip
_READS = frozenset({"get", "gat"})
_EXTENDS = frozenset({"append", "prepend"})
STORES = frozenset({"set", "add", "replace", "cas"}) | _EXTENDS
_TEXT_STORES = frozenset(verb.encode() for verb in STORES)
_META_MODES = {"S": "set", "E": "add", "R": "replace", "A": "append", "P": "prepend"}
# Longer than a line with 1000 keys of 250 bytes.
_LONGEST_LINE_BYTES = 1 << 20


class Command(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One command on one key. `gets` counts as `get`: some libraries only send `gets`.

    `quiet` says nothing about batches: in the binary protocol a batch is always quiet.
    """

    verb: str
    key: bytes
    flags: int = 0
    exptime_s: int = 0
    amount: int = 0
    value: bytes = b""
    quiet: bool = False


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request: its bytes and its commands; `opcode` and `opaque` are for binary requests."""

    raw: bytes
    wire: Literal["text", "binary", "meta"]
    commands: list[Command] = []
    opcode: int = 0
    opaque: int = 0

    @property
    def reads(self) -> bool:
        """Whether it asks for values."""
        return any(command.verb in _READS for command in self.commands)


class NotARequest(Exception):  # noqa: N818
    """The bytes are not a valid request."""


class RequestReader:
    """Splits a stream of bytes into requests."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[SentRequest]:
        """Add bytes; yields the requests that are complete now. Raises NotARequest."""
        self._bytes += data
        while (request := _first(self._bytes)) is not None:
            del self._bytes[: len(request.raw)]
            yield request


def _first(data: bytearray) -> SentRequest | None:
    if not data:
        return None
    return _binary(data) if data[0] == _BINARY else _text(data)


def _binary(data: bytearray) -> SentRequest | None:
    if len(data) < HEADER.size:
        return None
    _, opcode, key_bytes, extra_bytes, _, _, body_bytes, opaque, cas = HEADER.unpack_from(data)
    whole = HEADER.size + body_bytes
    if len(data) < whole:
        return None
    raw = bytes(data[:whole])
    extras_end = HEADER.size + extra_bytes
    extras, value_at = raw[HEADER.size : extras_end], extras_end + key_bytes
    commands: list[Command] = []
    if opcode in _OPCODES:
        verb, quiet = _OPCODES[opcode]
        facts = _extras("cas" if verb in STORES - _EXTENDS and cas else verb, extras)
        key, value = raw[extras_end:value_at], raw[value_at:]
        commands = [msgspec.structs.replace(facts, key=key, value=value, quiet=quiet)]
    return SentRequest(raw=raw, wire="binary", commands=commands, opcode=opcode, opaque=opaque)


def _extras(verb: str, extras: bytes) -> Command:
    """The command in the extras of a binary request, still without its key."""
    if verb in STORES - _EXTENDS:
        flags, exptime_s = struct.unpack(">II", extras)
        return Command(verb=verb, key=b"", flags=flags, exptime_s=exptime_s)
    if verb in {"incr", "decr"}:
        return Command(verb=verb, key=b"", amount=struct.unpack_from(">Q", extras)[0])
    if verb in {"touch", "gat"}:
        return Command(verb=verb, key=b"", exptime_s=struct.unpack(">I", extras)[0])
    return Command(verb=verb, key=b"")


def _text(data: bytearray) -> SentRequest | None:
    end = data.find(b"\n")
    if end < 0:
        if len(data) > _LONGEST_LINE_BYTES:
            raise NotARequest(f"a line of {len(data)} bytes")
        return None
    words = bytes(data[:end]).split()
    verb = words[0] if words else b""
    meta = len(verb) == 2 and verb[:1] == b"m"
    try:
        length = _data_length(verb, words)
        whole = end + 1 + (0 if length is None else length + 2)
        if len(data) < whole:
            return None
        value = bytes(data[end + 1 : whole - 2])
        commands = _meta_commands(words, value) if meta else _text_commands(words, value)
    except (IndexError, ValueError) as error:
        raise NotARequest(b" ".join(words[:6]).decode(errors="replace")) from error
    return SentRequest(raw=bytes(data[:whole]), wire="meta" if meta else "text", commands=commands)


def _data_length(verb: bytes, words: list[bytes]) -> int | None:
    """The length of the data block after the line, without its line end; None if there is none."""
    if verb in _TEXT_STORES:
        return int(words[4])
    return int(words[2]) if verb == b"ms" else None


def _text_commands(words: list[bytes], value: bytes) -> list[Command]:
    verb = words[0].decode() if words else ""
    quiet = words[-1:] == [b"noreply"]
    if verb in {"get", "gets"}:
        return [Command(verb="get", key=key) for key in words[1:]]
    if verb in {"gat", "gats"}:
        return [Command(verb="gat", key=key, exptime_s=int(words[1])) for key in words[2:]]
    if verb in STORES:
        flags, exptime_s = int(words[2]), int(words[3])
        return [
            Command(verb=verb, key=words[1], flags=flags, exptime_s=exptime_s,
                    value=value, quiet=quiet)
        ]  # fmt: skip
    if verb == "touch":
        return [Command(verb=verb, key=words[1], exptime_s=int(words[2]), quiet=quiet)]
    if verb in {"incr", "decr"}:
        return [Command(verb=verb, key=words[1], amount=int(words[2]), quiet=quiet)]
    return [Command(verb=verb, key=words[1], quiet=quiet)] if verb == "delete" else []


def _meta_commands(words: list[bytes], value: bytes) -> list[Command]:
    name = words[0].decode()
    marks = {chr(word[0]): word[1:].decode() for word in words[3 if name == "ms" else 2 :]}
    quiet, exptime_s = "q" in marks, int(marks.get("T", "0"))
    if name == "mg":
        verb = "get" if "T" not in marks else "gat" if "v" in marks else "touch"
        return [Command(verb=verb, key=words[1], exptime_s=exptime_s, quiet=quiet)]
    if name == "ms":
        mode = _META_MODES.get(marks.get("M", "S").upper()[:1])
        if mode is None:
            return []
        verb = "cas" if "C" in marks else mode
        flags = int(marks.get("F", "0"))
        return [
            Command(verb=verb, key=words[1], flags=flags, exptime_s=exptime_s,
                    value=value, quiet=quiet)
        ]  # fmt: skip
    if name == "ma":
        verb = "decr" if marks.get("M", "I").upper()[:1] in {"D", "-"} else "incr"
        return [Command(verb=verb, key=words[1], amount=int(marks.get("D", "1")), quiet=quiet)]
    return [Command(verb="delete", key=words[1], quiet=quiet)] if name == "md" else []
