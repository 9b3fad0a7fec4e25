"""The tape of docs/tape.md: its tables, every one checked before it is trusted."""

from __future__ import annotations

import struct
import sys
from collections import namedtuple
from itertools import islice

# By their number on the tape. Only the native client plays 12, 13, 17 and 20.
VERBS = dict(enumerate(("get", "gets", "mget", "set", "add", "replace", "delete", "touch", "gat",
                        "version", "mset"), 1)) | {14: "cas", 15: "incr", 16: "decr"}  # fmt: skip
READS = {"get", "gets", "mget", "gat"}
BATCHES = {"mget", "mset"}
STEPS = {"incr", "decr"}
MAY_BE_QUIET = {"set", "add", "replace", "delete", "touch", "mset", *STEPS}
KINDS = [*VERBS.values(), *(f"{verb}_noreply" for verb in VERBS.values() if verb in MAY_BE_QUIET)]
COUNTER = b"1000000000"  # the stored text of each counter
_ON_COUNTERS = {*STEPS, "delete", "version"}
_WITH_GENERATION = {"set", "get", "gets", "gat", "mget"}
GENERATIONS = 4
# The generations that a read may bring, by the generation in its record.
_RIGHT = ((0, 1, 2, 3), (1, 2, 3), (2, 1), (3, 1))
_VERSION, _HEADER_BYTES = 2, 184
_Header = namedtuple("_Header", (
    "file_bytes", "seed", "key_count", "prefill_count", "op_count", "run_count", "pool_bytes",
    "period_ns", "key_offsets_at", "key_bytes_at", "key_bytes", "lengths_at", "pool_at", "ops_at",
    "runs_at", "times_at", "exptime_s", "flags", "group", "counter_count", "thinks_at",
))  # fmt: skip
_RECORD = struct.Struct("<BBHIII")
# Bytes that a key must not have: white space and control characters.
_NOT_IN_KEYS = bytes([*range(33), 127])


class TapeError(Exception):
    """A file that is no tape; the text names the failed check and its place."""


class Tape:
    """A tape read whole. Raises OSError, TapeError."""

    def __init__(self, path):
        with open(path, "rb") as file:  # noqa: PTH123
            self._data = memoryview(file.read())
        self._head = head = self._header()
        self.prefill_count, self.op_count, self.group = (
            head.prefill_count,
            head.op_count,
            head.group,
        )
        self.period_ns, self.exptime_s = head.period_ns, head.exptime_s
        self.generation_lanes = head.flags >> 32  # 0: the records have no generations
        self.open_loop, self.verified = head.times_at > 0, not head.flags & 1
        self._prefilled = False
        self.any_generation = False  # whether a read may bring any generation: see `accept_any`
        self.thinks = head.thinks_at > 0
        self.pool_bytes = head.pool_bytes
        self.first_counter = head.key_count - head.counter_count
        self.keys = self._keys(head)
        self.lengths = self._lengths(head)
        self._pool = bytes(self._table("B", "pool_at", head.pool_bytes))
        self._runs = self._table("I", "runs_at", head.run_count)
        known = max(self._runs, default=0) < head.key_count
        self._check(known, "a run of unknown keys", head.runs_at)
        self._records = self._table("B", "ops_at", 16 * head.op_count)
        self.kinds, self.repeats, self.expires = self._check_records(head)
        self.times = self._times(head) if self.open_loop else None
        if self.thinks:
            self._table("Q", "thinks_at", head.op_count)

    def _check(self, holds, what, at):
        if not holds:
            raise TapeError(f"the tape has {what} (at byte {at})")

    def _header(self):
        check = self._check
        check(len(self._data) >= _HEADER_BYTES, f"no header of {_HEADER_BYTES} bytes", 0)
        check(sys.byteorder == "little", "little-endian numbers, this machine has not", 0)
        begin = struct.pack("<6sxxII", b"CMTAPE", _VERSION, _HEADER_BYTES)
        check(self._data[:8] == begin[:8], "no magic", 0)
        check(self._data[8:12] == begin[8:12], f"another version than {_VERSION}", 8)
        check(self._data[12:16] == begin[12:], "a header of another length", 12)
        head = _Header(*struct.unpack_from("<21Q", self._data, 16))
        check(head.file_bytes == len(self._data), "another length than it says", 16)
        check(0 < head.key_count < 2**32, "no possible number of keys", 32)
        check(head.prefill_count <= head.key_count, "more keys to store than it has", 40)
        check(head.op_count > 0, "no operations", 48)
        check(head.exptime_s < 2**32, "no possible expiry time", 144)
        check(head.flags & 0xFFFFFFFE == 0, "unknown flags", 152)
        whole = head.group > 0 and head.op_count % head.group == 0
        check(whole, "records that are no whole number of groups", 160)
        check(head.counter_count <= head.key_count, "more counters than keys", 168)
        scheduled = (head.times_at > 0) == (head.period_ns > 0)
        check(scheduled, "times without a period, or a period without times", 72)
        check(not (head.times_at and head.thinks_at), "both times and think times", 176)
        return head

    def _table(self, code, field, count):
        """The numbers of a section, which begins where the header's `field` says."""
        at, size = getattr(self._head, field), count * struct.calcsize(f"<{code}")
        inside = at >= _HEADER_BYTES and at % 8 == 0 and at + size <= len(self._data)
        self._check(inside, "a section outside the file", 16 + 8 * _Header._fields.index(field))
        return self._data[at : at + size].cast(code)

    def _keys(self, head):
        offsets = self._table("I", "key_offsets_at", head.key_count + 1)
        text = bytes(self._table("B", "key_bytes_at", head.key_bytes))
        inside = offsets[0] == 0 and offsets[-1] <= head.key_bytes
        self._check(inside, "a key outside its table", head.key_offsets_at)
        clean = len(text.translate(None, _NOT_IN_KEYS)) == len(text)
        self._check(clean, "a key with white space or a control character", head.key_bytes_at)
        bounds = list(zip(offsets, islice(offsets, 1, None)))
        right = all(0 < b - a <= 250 for a, b in bounds)
        self._check(right, "a key of a wrong length", head.key_offsets_at)
        return [text[a:b] for a, b in bounds]

    def _lengths(self, head):
        lengths = self._table("I", "lengths_at", head.key_count)
        self._check(max(lengths) <= head.pool_bytes, "a length beyond the pool", head.lengths_at)
        counters = set(lengths[self.first_counter :])
        self._check(counters <= {len(COUNTER)}, "a counter of another length", head.lengths_at)
        return lengths

    def _check_records(self, head):
        """The kinds on the tape, whether a batch names a key twice, whether any key expires."""
        kinds, repeats, expires = set(), False, head.exptime_s > 0
        records = list(_RECORD.iter_unpack(self._records))
        # Most records occur many times: this checks each at its first place.
        first = dict(zip(reversed(records), range(len(records) - 1, -1, -1)))
        for (verb, flags, run, key, length, ttl), j in reversed(first.items()):
            at, name = head.ops_at + 16 * j, VERBS.get(verb)
            self._check(name, f"an unknown verb {verb}", at)
            quiet, generation = flags & 1, flags >> 1
            self._check(not quiet or name in MAY_BE_QUIET, "bad flags", at)
            may_have = self.generation_lanes and name in _WITH_GENERATION
            self._check(not generation or (generation < GENERATIONS and may_have), "bad flags", at)
            batch = name in BATCHES
            limit, least = (head.run_count, 1) if batch else (head.key_count, name != "version")
            self._check(run == least or (run > 1 and batch), "a wrong run", at)
            self._check(key + run <= limit or name == "version", "an unknown key", at)
            if name in STEPS:
                self._check(key >= self.first_counter, "a counter's verb on another key", at)
            else:
                self._check(length <= head.pool_bytes, "a length beyond the pool", at)
            if head.counter_count and name not in _ON_COUNTERS:
                last = max(self._runs[key : key + run]) if batch else key
                self._check(last < self.first_counter, f"a {name} of a counter", at)
            kinds.add(name + "_noreply" * quiet)
            repeats = repeats or (run > 1 and len(set(self._runs[key : key + run])) < run)
            expires = expires or ttl > 0
        return kinds, repeats, expires

    def _times(self, head):
        times = self._table("Q", "times_at", head.op_count)
        ordered = all(a <= b for a, b in zip(times, islice(times, 1, None)))
        self._check(ordered and times[-1] < head.period_ns, "times out of order", head.times_at)
        return times

    def raw(self, number):
        """A record as it is on the tape, for `fields`."""
        return _RECORD.unpack_from(self._records, 16 * number)

    def record(self, number):
        """The fields of a record."""
        return self.fields(self.raw(number))

    def fields(self, raw):
        """A record's verb, whether it has no reply, keys, length, expiry time, generation."""
        verb, flags, run, key, length, exptime_s = raw
        name = VERBS[verb]
        keys = list(self._runs[key : key + run]) if name in BATCHES else [key][:run]
        return name, flags & 1 == 1, keys, length, exptime_s, flags >> 1

    @property
    def grouped(self):
        """Whether it has groups whose times are measured."""
        return self.group > 1 and not self.open_loop

    def numbers(self, lane, lanes):
        """The numbers of a lane's records."""
        firsts = range(lane * self.group, self.op_count, lanes * self.group)
        if self.group == 1:
            return firsts
        return [j for first in firsts for j in range(first, first + self.group)]

    def begin_prefill(self):
        """A second prefill means that the first failed, and its writes may still arrive."""
        self.any_generation |= self._prefilled
        self._prefilled = True

    def accept_any(self):
        """From now on a read may bring any generation: a failed write may still arrive."""
        self.any_generation = True

    def value(self, key, length, generation=0):
        """The value of a key at a length, in a generation; None if there is none."""
        if length > self.pool_bytes:
            return None
        at = (key * 786433 + length * 97 + generation * 262147) % (self.pool_bytes - length + 1)
        return self._pool[at : at + length]

    def right(self, key, value, told):
        """Whether a read may bring a value; `told` is the generation in its record."""
        if not self.generation_lanes:
            return value == self.value(key, len(value))
        may_be = _RIGHT[0 if self.any_generation else told]
        return any(value == self.value(key, len(value), each) for each in may_be)
