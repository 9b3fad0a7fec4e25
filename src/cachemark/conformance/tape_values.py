"""What a tape writes, read from its bytes independently of any worker (docs/tape.md)."""

from __future__ import annotations

import struct
from pathlib import Path

import msgspec

_HEADER = struct.Struct("<21Q")
_SET = 4


class _Tape(msgspec.Struct, frozen=True):
    data: bytes
    fields: tuple[int, ...]

    def key(self, index: int) -> bytes:
        offsets_at, keys_at = self.fields[8], self.fields[9]
        begin, end = struct.unpack_from("<2I", self.data, offsets_at + 4 * index)
        return self.data[keys_at + begin : keys_at + end]

    def length(self, index: int) -> int:
        return struct.unpack_from("<I", self.data, self.fields[11] + 4 * index)[0]

    def value(self, index: int, length: int) -> bytes:
        pool_bytes, pool_at = self.fields[6], self.fields[12]
        at = pool_at + (index * 786433 + length * 97) % (pool_bytes - length + 1)
        return self.data[at : at + length]


def _open(path: Path) -> _Tape:
    data = path.read_bytes()
    return _Tape(data, _HEADER.unpack_from(data, 16))


def tape_values(path: Path) -> list[bytes]:
    """The value of each key at its own length."""
    tape = _open(path)
    return [tape.value(k, tape.length(k)) for k in range(tape.fields[2])]


def tape_writes(path: Path) -> list[tuple[bytes, int, int, bytes]]:
    """The prefill and the sets of a tape, as (key, flags, expiry time in s, value)."""
    tape = _open(path)
    ops, ops_at, exptime_s = tape.fields[4], tape.fields[13], tape.fields[16]
    prefill = [
        (tape.key(k), 0, exptime_s, tape.value(k, tape.length(k))) for k in range(tape.fields[3])
    ]
    records = struct.iter_unpack("<BBHIII", tape.data[ops_at : ops_at + 16 * ops])
    return prefill + [
        (tape.key(key), 0, expires_s, tape.value(key, length))
        for verb, _, _, key, length, expires_s in records
        if verb == _SET
    ]
