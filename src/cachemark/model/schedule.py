"""When the operations of an open loop were due, from the tape itself (docs/tape.md)."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

_HEADER = struct.Struct("<21Q")
_HEADER_AT = 16
_OP_COUNT, _PERIOD_NS, _TIMES_AT = 4, 7, 15


class Schedule:
    """The intended starts of a tape of an open loop, repeated as it is played."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            fields = _HEADER.unpack_from(file.read(_HEADER_AT + _HEADER.size), _HEADER_AT)
        self._ops, self._period_ns = fields[_OP_COUNT], fields[_PERIOD_NS]
        self._times = np.memmap(
            path, dtype="<u8", mode="r", offset=fields[_TIMES_AT], shape=(self._ops,)
        )

    def due(self, at_ns: int) -> int:
        """How many operations were due by an instant, in ns since the window's start."""
        passes, within = divmod(max(0, at_ns), self._period_ns)
        return passes * self._ops + int(np.searchsorted(self._times, within, side="right"))
