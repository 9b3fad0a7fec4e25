"""The header of a tape file, and when its operations are due (docs/tape.md)."""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

_MAGIC = b"CMTAPE\0\0"
_VERSION = 2
_LAYOUT = struct.Struct("<8s2I21Q")


class TapeHeader(NamedTuple):
    """Every field after the magic bytes, in the order of the file; `*_at` are offsets in bytes."""

    version: int
    header_bytes: int
    file_bytes: int
    seed: int
    key_count: int
    prefill_count: int
    op_count: int
    run_count: int
    pool_bytes: int
    period_ns: int
    key_offsets_at: int
    key_bytes_at: int
    key_bytes: int
    lengths_at: int
    pool_at: int
    ops_at: int
    runs_at: int
    times_at: int
    exptime_s: int
    flags: int
    group: int
    counter_count: int
    thinks_at: int


def read_header(path: Path) -> TapeHeader:
    """Read a tape's header. Raises ValueError if the file is no tape of this version."""
    with path.open("rb") as file:
        data = file.read(_LAYOUT.size)
    if len(data) < _LAYOUT.size:
        raise ValueError(f"{path}: too short for a tape")
    magic, *fields = _LAYOUT.unpack(data)
    header = TapeHeader(*fields)
    if magic != _MAGIC or header.version != _VERSION:
        raise ValueError(f"{path}: not a tape of version {_VERSION}")
    return header


class Schedule:
    """The intended start times on a tape. They repeat with the period of the tape."""

    def __init__(self, path: Path) -> None:
        header = read_header(path)
        self._ops, self._period_ns = header.op_count, header.period_ns
        self._times = np.memmap(
            path, dtype="<u8", mode="r", offset=header.times_at, shape=(header.op_count,)
        )

    def due(self, at_ns: int) -> int:
        """The number of operations that were due by `at_ns` after the window's start."""
        passes, within = divmod(max(0, at_ns), self._period_ns)
        return passes * self._ops + int(np.searchsorted(self._times, within, side="right"))
