"""The tape: its tables, checked before they are trusted, and its records as operations."""

from __future__ import annotations

import struct
import sys
from itertools import islice

# By their number on the tape; 12 and 13 are reserved.
VERBS = dict(enumerate(("get", "gets", "mget", "set", "add", "replace", "delete", "touch", "gat",
                        "version", "mset"), 1)) | {14: "cas", 15: "incr", 16: "decr"}  # fmt: skip
MAY_BE_QUIET = {"set", "add", "replace", "delete", "touch", "mset", "incr", "decr"}
KINDS = [*VERBS.values(), *(f"{verb}_noreply" for verb in VERBS.values() if verb in MAY_BE_QUIET)]
READS = {"get", "gets", "mget", "gat"}
BATCHES = {"mget", "mset"}
STEPS = {"incr", "decr"}
_VALUELESS = {*STEPS, "delete", "touch", "version"}
_ON_COUNTERS = {*STEPS, "delete", "version"}
_VERSION, _HEADER_BYTES = 2, 184
_COUNTER = b"1000000000"  # what each counter is stored as
# What a key must not hold: white space and control characters.
_NOT_IN_KEYS = bytes([*range(33), 127])
# Operations are made ready before a window unless they would take more memory than this.
_HELD_BYTES = 1 << 30
_OPERATION_BYTES = 500


class TapeError(Exception):
    """A file that is no tape; the text says which check failed, and where."""


class Operation:
    """One operation of a lane, in the form that client files read.

    `key`/`keys` are in the library's form; `value`/`values` are what is written or what a read has
    to bring; `pairs` joins them for a batch; `amount` is a counter's step. `done` is what to note
    when all went as it should.
    """

    __slots__ = ("_indexes", "_tape", "amount", "done", "exptime_s", "key", "keys", "kind", "number",
                 "pairs", "value", "values")  # fmt: skip

    def __init__(self, tape, number, kind, indexes, names, values, exptime_s, done, amount=0):  # noqa: PLR0917
        self._tape = tape
        self._indexes = indexes
        self.number = number
        self.kind = kind
        self.keys = names
        self.values = values
        self.key = names[0] if names else None
        self.value = values[0] if values else None
        self.pairs = dict(zip(names, values)) if kind.startswith(("mget", "mset")) else None
        self.exptime_s = exptime_s
        self.done = done
        self.amount = amount

    def verify(self, position, value):
        """Whether a value that was read is right for a key, at whatever length it was written."""
        if not self._tape.verified or value == self.values[position]:
            return True
        return value == self._tape.value(self._indexes[position], len(value))


class Tape:
    """A tape read whole. Raises OSError, TapeError."""

    def __init__(self, path):
        with open(path, "rb") as file:  # noqa: PTH123
            self._data = memoryview(file.read())
        self._check(len(self._data) >= _HEADER_BYTES, f"no header of {_HEADER_BYTES} bytes", 0)
        self._check(sys.byteorder == "little", "little-endian numbers, this machine has not", 0)
        head = struct.pack("<6sxxII", b"CMTAPE", _VERSION, _HEADER_BYTES)
        self._check(self._data[:16] == head, f"no magic of version {_VERSION}", 0)
        fields = struct.unpack_from("<21Q", self._data, 16)
        size, _, key_count, self.prefill_count, self.op_count, run_count = fields[:6]
        self.pool_bytes, self.period_ns, offsets_at, keys_at, key_bytes, lengths_at = fields[6:12]
        pool_at, ops_at, runs_at, times_at, self.exptime_s, flags = fields[12:18]
        self.group, counters, reserved = fields[18:]
        self.open_loop, self.verified = times_at > 0, not flags & 1
        self._check(size == len(self._data), "another length than it says", 16)
        self._check(0 < key_count < 2**32, "no possible number of keys", 32)
        self._check(self.prefill_count <= key_count, "more keys to store than it has", 40)
        self._check(self.op_count > 0, "no operations", 48)
        self._check(self.exptime_s < 2**32, "no possible expiry time", 144)
        self._check(flags < 2, "unknown flags", 152)
        whole = self.group > 0 and self.op_count % self.group == 0
        self._check(whole, "records that are no whole number of groups", 160)
        self._check(counters <= key_count, "more counters than keys", 168)
        self._check(reserved == 0, "something where nothing is meant", 176)
        self._first_counter = key_count - counters
        self._read_keys(offsets_at, keys_at, key_bytes, key_count)
        self._lengths = self._table("I", lengths_at, key_count)
        self._pool = bytes(self._table("B", pool_at, self.pool_bytes))
        self._check(max(self._lengths) <= self.pool_bytes, "a length beyond the pool", lengths_at)
        counted = self._lengths[self._first_counter :]
        self._check(set(counted) <= {len(_COUNTER)}, "a counter of another length", lengths_at)
        self._runs = self._table("I", runs_at, run_count)
        self._check(max(self._runs, default=0) < key_count, "a run of unknown keys", runs_at)
        self._records = self._table("B", ops_at, 16 * self.op_count)
        self._check_records(ops_at, key_count, run_count)
        self.times = self._table("Q", times_at, self.op_count) if self.open_loop else None
        if self.times:
            later = all(a <= b for a, b in zip(self.times, islice(self.times, 1, None)))
            self._check(later and self.times[-1] < self.period_ns, "times out of order", times_at)
        self._values = {}  # values that were cut from the pool, shared by all operations

    def _check(self, holds, what, at):
        if not holds:
            raise TapeError(f"the tape has {what} (at byte {at})")

    def _table(self, code, at, count):
        size = count * struct.calcsize(f"<{code}")
        self._check(at % 8 == 0 and at + size <= len(self._data), "a section outside the file", at)
        return self._data[at : at + size].cast(code)

    def _read_keys(self, offsets_at, keys_at, key_bytes, key_count):
        offsets = self._table("I", offsets_at, key_count + 1)
        text = bytes(self._table("B", keys_at, key_bytes))
        self._check(offsets[-1] <= key_bytes, "a key outside its table", offsets_at)
        clean = len(text.translate(None, _NOT_IN_KEYS)) == len(text)
        self._check(clean, "a key with white space or a control character", keys_at)
        bounds = list(zip(offsets, islice(offsets, 1, None)))
        self._check(all(0 < b - a <= 250 for a, b in bounds), "a key of a wrong length", offsets_at)
        self.keys = [text[a:b] for a, b in bounds]

    def _check_records(self, at, key_count, run_count):
        """Also learn the kinds on the tape, and whether a batch names a key twice."""
        self.kinds, self.repeats, first_counter = set(), False, self._first_counter
        for j, (verb, flags, run, key, length, _) in enumerate(self._raw(range(self.op_count))):
            place, name = at + 16 * j, VERBS.get(verb, "")
            self._check(name, f"an unknown verb {verb}", place)
            self._check(not flags or (flags == 1 and name in MAY_BE_QUIET), "bad flags", place)
            limit, least = (run_count, 1) if name in BATCHES else (key_count, name != "version")
            self._check(run == least or (run > 1 and name in BATCHES), "a wrong run", place)
            self._check(key + run <= limit or name == "version", "an unknown key", place)
            if name in STEPS:
                self._check(key >= first_counter, "a counter's verb on another key", place)
            else:
                self._check(length <= self.pool_bytes, "a length beyond the pool", place)
            if first_counter < key_count and name not in _ON_COUNTERS:
                keys = self._runs[key : key + run] if name in BATCHES else [key]
                self._check(max(keys) < first_counter, f"a {name} of a counter", place)
            self.kinds.add(name + "_noreply" * flags)
            if run > 1 and not self.repeats:
                self.repeats = len(set(self._runs[key : key + run])) < run

    def _raw(self, numbers):
        unpack, records = struct.Struct("<BBHIII").unpack_from, self._records
        return (unpack(records, 16 * j) for j in numbers)

    def value(self, key, length):
        """The value of a key at a length, whichever write it came from."""
        if length > self.pool_bytes:
            return None
        at = (key * 786433 + length * 97) % (self.pool_bytes - length + 1)
        return self._pool[at : at + length]

    def facts(self, number):
        """Of record `number`: its kind, how many keys it names, and their bytes."""
        verb, flags, run, key, _, _ = next(self._raw([number]))
        name = VERBS[verb]
        keys = self._runs[key : key + run] if name in BATCHES else [key][:run]
        return name + "_noreply" * flags, len(keys), sum(len(self.keys[k]) for k in keys)

    def prefill_facts(self, key):
        """The same of the write that stores a key before anything is timed."""
        return "set", 1, len(self.keys[key])

    def numbers(self, lane, lanes):
        """The numbers of a lane's records: every group whose turn is this lane's."""
        group = self.group
        if group == 1:
            return range(lane, self.op_count, lanes)
        firsts = range(lane * group, self.op_count, lanes * group)
        return [j for first in firsts for j in range(first, first + group)]

    def lane(self, lane, lanes, names):
        """A function that gives a lane's operations from the first; `names` are the keys, in the
        form that the library takes.

        All are made now, or where that would not fit each just before its turn.
        """
        numbers = self.numbers(lane, lanes)
        if sum(self._lengths) + _OPERATION_BYTES * len(numbers) > _HELD_BYTES:
            return lambda: (self._operation(j, names, {}) for j in numbers)
        ready = [self._operation(j, names, self._values) for j in numbers]
        return lambda: ready

    def prefill(self, lane, lanes, names):
        """The writes that store a lane's keys, made one by one."""
        for k in range(lane, self.prefill_count, lanes):
            value = _COUNTER if k >= self._first_counter else self.value(k, self._lengths[k])
            done = len(value) << 17
            yield Operation(self, k, "set", [k], [names[k]], [value], self.exptime_s, done)

    def _operation(self, number, names, keep):
        verb, flags, run, key, length, exptime_s = next(self._raw([number]))
        name = VERBS[verb]
        kind = name + "_noreply" * flags
        keys = list(self._runs[key : key + run]) if name in BATCHES else [key][:run]
        texts = [names[k] for k in keys]
        if name in _VALUELESS:
            done = 0 if flags else len(keys)
            return Operation(self, number, kind, keys, texts, [], exptime_s, done, length)
        own = name in READS or name == "mset"
        values = [self._kept(k, self._lengths[k] if own else length, keep) for k in keys]
        done = sum(map(len, values)) << 17 | (len(keys) if name in READS else 0)
        return Operation(self, number, kind, keys, texts, values, exptime_s, done)

    def _kept(self, key, length, keep):
        found = keep.get((key, length))
        if found is None:
            found = keep[key, length] = self.value(key, length)
        return found
