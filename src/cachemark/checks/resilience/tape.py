"""The tape of all cells: four callers read and write all keys, and no two writes are alike."""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from pathlib import Path

from cachemark.checks.resilience.call_log import SET, TAPE_RECORD, TapeData
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.model.tape_header import read_header

KEYS = 1009  # a prime, so that each caller comes to each key
_RATE = 400
# Longer than any cell: where a tape begins again, its lengths come again.
_TAPE_S = 60
_SHORTEST, _LONGEST = 100, 1000
_LENGTH = struct.Struct("<I")
_LENGTH_AT = 8  # in a record


def write_tape(path: Path) -> TapeData:
    """Write the tape: reads in turn of all keys, and writes of other lengths. Raises UsageError."""
    command = [
        process.binary_path(), "tape", "write", "--out", str(path), "--keys", str(KEYS),
        "--distribution", "sequential", "--size", f"{_SHORTEST}..{_LONGEST}",
        "--mix", "get=9,set=1", "--schedule", "uniform", "--rate", str(_RATE),
        "--duration", f"{_TAPE_S}s",
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise UsageError(f"tape: {ended.stderr.strip()}")
    _make_writes_differ(path)
    return TapeData(path)


def _make_writes_differ(path: Path) -> None:
    """Give each set of a key another length: a read then shows which of them it saw.

    The engine writes a key at one length always.
    """
    header, data = read_header(path), bytearray(path.read_bytes())
    writes: Counter[int] = Counter()
    lengths = struct.unpack_from(f"<{header.key_count}I", data, header.lengths_at)
    for number in range(header.op_count):
        at = header.ops_at + number * TAPE_RECORD.size
        verb, _, _, key, _, _ = TAPE_RECORD.unpack_from(data, at)
        if verb == SET:
            writes[key] += 1
            _LENGTH.pack_into(data, at + _LENGTH_AT, _version_length(lengths[key], writes[key]))
    path.write_bytes(data)


def _version_length(first: int, version: int) -> int:
    """A length within the bounds, which differs for hundreds of versions; version 0 has `first`."""
    return _SHORTEST + (first - _SHORTEST + version) % (_LONGEST - _SHORTEST + 1)
