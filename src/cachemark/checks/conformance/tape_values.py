"""The commands on a tape, read independently of any worker (docs/tape.md)."""

import struct
from pathlib import Path

import msgspec

from cachemark.checks.conformance.requests import Command
from cachemark.model.tape_header import TapeHeader, read_header

_VERBS = {1: "get", 2: "get", 3: "mget", 4: "set", 5: "add", 6: "replace", 7: "delete",
          8: "touch", 9: "gat", 11: "mset", 12: "append", 13: "prepend", 14: "cas", 15: "incr",
          16: "decr"}  # fmt: skip
_COUNTER = b"1000000000"


class _Tape(msgspec.Struct, frozen=True):
    data: bytes
    header: TapeHeader

    def key(self, index: int) -> bytes:
        offsets_at, keys_at = self.header.key_offsets_at, self.header.key_bytes_at
        begin, end = struct.unpack_from("<2I", self.data, offsets_at + 4 * index)
        return self.data[keys_at + begin : keys_at + end]

    def length(self, index: int) -> int:
        return struct.unpack_from("<I", self.data, self.header.lengths_at + 4 * index)[0]

    def run(self, at: int) -> int:
        return struct.unpack_from("<I", self.data, self.header.runs_at + 4 * at)[0]

    def value(self, index: int, length: int, generation: int = 0) -> bytes:
        keys, counters = self.header.key_count, self.header.counter_count
        if index >= keys - counters:
            return _COUNTER
        pool_bytes, pool_at = self.header.pool_bytes, self.header.pool_at
        place = index * 786433 + length * 97 + generation * 262147
        at = pool_at + place % (pool_bytes - length + 1)
        return self.data[at : at + length]


def _open(path: Path) -> _Tape:
    return _Tape(path.read_bytes(), read_header(path))


def tape_values(path: Path) -> list[bytes]:
    """The value of each key."""
    tape = _open(path)
    return [tape.value(k, tape.length(k)) for k in range(tape.header.key_count)]


def told_generations(path: Path, ops: int) -> int:
    """How many of the first records are reads that tell the generation of a write before them."""
    tape = _open(path)
    at = tape.header.ops_at
    records = struct.iter_unpack("<BBHIII", tape.data[at : at + 16 * ops])
    return sum(_VERBS.get(verb) == "get" and flags > 1 for verb, flags, *_ in records)


def tape_commands(path: Path) -> list[list[Command]]:
    """The commands of prefill and records; one record's commands may come in any order."""
    tape = _open(path)
    ops, ops_at, exptime_s = tape.header.op_count, tape.header.ops_at, tape.header.exptime_s
    stored = range(tape.header.prefill_count)
    prefill = [_store(tape, "set", k, tape.length(k), exptime_s) for k in stored]
    records = struct.iter_unpack("<BBHIII", tape.data[ops_at : ops_at + 16 * ops])
    return [[each] for each in prefill] + [_commands(tape, record) for record in records]


def _store(  # noqa: PLR0917
    tape: _Tape, verb: str, key: int, length: int, exptime_s: int, generation: int = 0
) -> Command:
    value = tape.value(key, length, generation)
    return Command(verb=verb, key=tape.key(key), exptime_s=exptime_s, value=value)


def _commands(tape: _Tape, record: tuple[int, ...]) -> list[Command]:
    number, flags, run, key, length, exptime_s = record
    verb, quiet = _VERBS[number], bool(flags & 1)
    if verb in {"mget", "mset"}:
        keys = [tape.run(key + i) for i in range(run)]
        if verb == "mget":
            return [Command(verb="get", key=tape.key(k)) for k in keys]
        return [_store(tape, "set", k, tape.length(k), exptime_s) for k in keys]
    if verb in {"set", "add", "replace", "cas"}:
        stored = _store(tape, verb, key, length, exptime_s, flags >> 1)
        read = [Command(verb="get", key=tape.key(key))] if verb == "cas" else []
        return [*read, msgspec.structs.replace(stored, quiet=quiet)]
    if verb in {"incr", "decr"}:
        return [Command(verb=verb, key=tape.key(key), amount=length, quiet=quiet)]
    expires_s = exptime_s if verb in {"touch", "gat"} else 0
    return [Command(verb=verb, key=tape.key(key), exptime_s=expires_s, quiet=quiet)]
