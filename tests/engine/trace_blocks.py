"""Reads cachemark's trace format as docs/trace-format.md describes it, not with the engine."""

import struct
from collections.abc import Iterator

_RECORDS = 2
_STEP, _OUTCOME, _SUCCEEDED, _SOURCE = 1, 1 << 5, 1 << 6, 1 << 7
# Size, time to live and count: one number each.
_NUMBERS = (1 << 1, 1 << 2, 1 << 3)


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        number, shift = 0, 0
        while (byte := self.byte()) >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift


def outcomes(file: bytes) -> Iterator[tuple[str, bool | None]]:
    """Operation and outcome of each record; None: the outcome is not known."""
    assert file[:8] == b"cmtrace\x01"
    at = 8
    while at < len(file):
        kind, _, length, records, _ = struct.unpack_from("<BB2xIII", file, at)
        at += 16
        if kind == _RECORDS:
            yield from _records(_Cursor(file[at : at + length]), records)
        at += length


def _records(cursor: _Cursor, records: int) -> Iterator[tuple[str, bool | None]]:
    cursor.take(8)
    names = [cursor.take(cursor.byte()).decode() for _ in range(cursor.number())]
    for _ in range(cursor.number()):
        cursor.take(cursor.byte())
        cursor.number()
    name = names[0]
    for _ in range(records):
        head = cursor.byte()
        if head & _STEP:
            cursor.number()
        cursor.number()
        if head & _SOURCE:
            name = names[cursor.byte()]
            cursor.number()
        for bit in _NUMBERS:
            if head & bit:
                cursor.number()
        yield name, bool(head & _SUCCEEDED) if head & _OUTCOME else None
