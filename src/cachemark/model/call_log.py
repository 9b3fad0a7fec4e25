"""Reads call logs (docs/call-log.md), with the tape's data for each call."""

import struct
from pathlib import Path
from typing import Literal, NamedTuple

from cachemark.model.errors import TrialError
from cachemark.model.tape_header import read_header

CallOutcome = Literal[
    "ok", "miss", "wrong", "timeout", "connection", "server", "client", "protocol"
]
OUTCOMES: tuple[CallOutcome, ...] = (
    "ok", "miss", "wrong", "timeout", "connection", "server", "client", "protocol",
)  # fmt: skip
_HEADER = struct.Struct("<8s2I")
_RECORD = struct.Struct("<QQIIHB5x")
_VERSION = 1
# A record of a tape: the verb, the run, the key and the length are at 0, 2, 4 and 8.
_TAPE_RECORD = struct.Struct("<BBHIII")
_SET = 4


class Call(NamedTuple):
    """One call. `length`: of the value that it read, or that it should write."""

    begin_ns: int
    end_ns: int
    record: int
    key: int
    is_write: bool
    length: int
    caller: int
    outcome: CallOutcome


class TapeData:
    """A tape of gets and sets: its records, its keys, and the values that it writes."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self._header = header = read_header(path)
        end = header.ops_at + _TAPE_RECORD.size * header.op_count
        self._records = list(_TAPE_RECORD.iter_unpack(self._data[header.ops_at : end]))
        self.lengths = struct.unpack_from(f"<{header.key_count}I", self._data, header.lengths_at)

    def record(self, number: int) -> tuple[bool, int, int]:
        """Whether a record is a set, its key, and the length that it writes."""
        verb, _, _, key, length, _ = self._records[number]
        return verb == _SET, key, length

    def value(self, key: int, length: int) -> bytes:
        """The value of a key at a length, as docs/tape.md defines it."""
        pool_bytes, pool_at = self._header.pool_bytes, self._header.pool_at
        if length > pool_bytes:
            return b""
        at = pool_at + (key * 786433 + length * 97) % (pool_bytes - length + 1)
        return self._data[at : at + length]

    def key_name(self, key: int) -> str:
        """A key, as it is sent."""
        offsets_at = self._header.key_offsets_at + 4 * key
        begin, end = struct.unpack_from("<2I", self._data, offsets_at)
        keys_at = self._header.key_bytes_at
        return self._data[keys_at + begin : keys_at + end].decode()

    def lengths_of(self, key: int) -> set[int]:
        """Every length at which the tape writes a key."""
        written = {r[4] for r in self._records if r[0] == _SET and r[3] == key}
        return written | {self.lengths[key]}


def read_calls(path: Path, tape: TapeData) -> list[Call]:
    """The calls in the order of their ends. Raises TrialError for a malformed log."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TrialError(f"no call log: {error}") from error
    body = data[_HEADER.size :]
    expected = (b"CMCALLS\0", _VERSION, _RECORD.size)
    if data[: _HEADER.size] != _HEADER.pack(*expected) or len(body) % _RECORD.size:
        raise TrialError("malformed call log", "docs/call-log.md defines it")
    try:
        calls = [_call(record, tape) for record in _RECORD.iter_unpack(body)]
    except IndexError as error:
        raise TrialError("call log: an unknown record or outcome") from error
    return sorted(calls, key=lambda call: call.end_ns)


def _call(packed: tuple[int, ...], tape: TapeData) -> Call:
    begin_ns, duration_ns, record, value_bytes, caller, outcome = packed
    is_write, key, length = tape.record(record)
    return Call(
        begin_ns=begin_ns,
        end_ns=begin_ns + duration_ns,
        record=record,
        key=key,
        is_write=is_write,
        length=length if is_write else value_bytes,
        caller=caller,
        outcome=OUTCOMES[outcome],
    )
