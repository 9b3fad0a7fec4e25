"""What is on a tape: tables of keys and values, and the operations with their requests made."""

import struct
from itertools import pairwise
from pathlib import Path

VERBS = {1: "get", 3: "mget", 4: "set", 7: "delete", 10: "version", 11: "mset"}
KINDS = [*VERBS.values(), "set_noreply", "delete_noreply", "mset_noreply"]


def kind(verb: int, flags: int) -> str:
    return VERBS.get(verb, f"of number {verb}") + "_noreply" * flags


class TapeError(Exception):
    """A file that is no tape; the text says which check failed, and where."""


class Tape:
    """A tape, checked before it is trusted. Raises OSError, TapeError."""

    def __init__(self, path: str) -> None:
        self.data = data = Path(path).read_bytes()
        self.check(len(data) >= 160, "no header", 0)
        self.check(data[:16] == struct.pack("<6sxxII", b"CMTAPE", 1, 160), "not version 1", 0)
        fields = struct.unpack_from("<18Q", data, 16)
        size, _, keys, self.prefilled, operations, runs, self.pool_bytes, _ = fields[:8]
        offsets_at, keys_at, key_bytes, lengths_at, self.pool_at = fields[8:13]
        records_at, runs_at, times_at, self.exptime_s, flags = fields[13:]
        self.open_loop, self.verified = times_at > 0, not flags & 1
        self.check(size == len(data), "another length than the file", 16)
        self.check(0 < keys < 2**32 and self.prefilled <= keys, "impossible counts of keys", 32)
        self.check(operations > 0, "no operations", 48)
        offsets, names = self.table(offsets_at, keys + 1), self.section(keys_at, key_bytes)
        self.check(offsets[-1] <= key_bytes, "a key outside the table", offsets_at)
        self.keys = [names[begin:end] for begin, end in pairwise(offsets)]
        for key in self.keys:
            whole = 0 < len(key) <= 250 and min(key) > 32 and 127 not in key
            self.check(whole, f"the key {key!r}", keys_at)
        self.lengths, self.runs = self.table(lengths_at, keys), self.table(runs_at, runs)
        self.section(self.pool_at, self.pool_bytes)
        self.check(max(self.lengths) <= self.pool_bytes, "a value beyond the pool", lengths_at)
        records = self.section(records_at, 16 * operations)
        self.records = list(struct.iter_unpack("<BBHIII", records))
        for number, (verb, flags, run, key, length, _) in enumerate(self.records):
            limit = runs if verb in (3, 11) else keys
            known = 1 <= verb <= 11 and flags <= 1 and length <= self.pool_bytes
            place = records_at + 16 * number
            self.check(known and (verb == 10 or key + max(run, 1) <= limit), "a bad record", place)
        self.check(max(self.runs, default=0) < keys, "a run of unknown keys", runs_at)

    def kinds(self, segment: tuple[int, int]) -> set[str]:
        share, of = segment
        return {kind(*head) for head in {record[:2] for record in self.records[share::of]}}

    def check(self, holds: bool, what: str, at: int) -> None:
        if not holds:
            raise TapeError(f"the tape has {what} (at byte {at})")

    def section(self, at: int, length: int) -> bytes:
        self.check(at % 8 == 0 and at + length <= len(self.data), "a section out of place", at)
        return self.data[at : at + length]

    def table(self, at: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self.section(at, 4 * count))

    def value(self, key: int, length: int) -> bytes:
        """The value of a key at a length, whichever write it came from."""
        at = self.pool_at + (key * 786433 + length * 97) % (self.pool_bytes - length + 1)
        return self.data[at : at + length]


class Operation:
    """A record of the tape, and the bytes that ask for it, made before anything is timed."""

    def __init__(self, tape: Tape, record: tuple[int, ...]) -> None:
        number, flags, run, key, length, exptime_s = record
        self.verb, self.noreply, self.kind = VERBS[number], bool(flags), kind(number, flags)
        batch = self.verb in ("mget", "mset")
        self.keys = tape.runs[key : key + run] if batch else (key,) * (self.verb != "version")
        names, end = [tape.keys[k] for k in self.keys], b" noreply\r\n" * self.noreply or b"\r\n"
        self.key_bytes, self.value_bytes = sum(map(len, names)), 0
        self.request = b" ".join([self.verb.replace("mget", "get").encode(), *names]) + end
        if self.verb in ("set", "mset"):
            lengths = [tape.lengths[k] if batch else length for k in self.keys]
            values = [tape.value(*pair) for pair in zip(self.keys, lengths, strict=True)]
            self.value_bytes = sum(lengths)
            self.request = b"".join(
                b"set %b 0 %d %d%b%b\r\n" % (name, exptime_s, len(value), end, value)
                for name, value in zip(names, values, strict=True)
            )
