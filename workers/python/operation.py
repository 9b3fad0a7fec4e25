"""The records of a tape as operations: in a library's own terms, made before they are measured."""

from __future__ import annotations

from itertools import chain, repeat

from tape import BATCHES, COUNTER, READS, STEPS
from verify import SIZE_BIT

# Operations are made ready before a window unless they would take more memory than this.
_HELD_BYTES = 1 << 30
_OPERATION_BYTES = 500
_WITHOUT_VALUE = {*STEPS, "delete", "touch", "version"}


class Operation:
    """One operation of a lane, in the form that client files read.

    `key`/`keys` are in the library's form; `value`/`values` are what is written or what a read has
    to bring; `pairs` joins them for a batch; `amount` is a counter's step. `ok_code` is the code
    of an operation that did what it should.
    """

    __slots__ = ("_indexes", "_tape", "amount", "exptime_s", "generation", "key", "keys", "kind",
                 "number", "ok_code", "pairs", "value", "values")  # fmt: skip

    def __init__(self, tape, number, parts):
        self._tape, self.number = tape, number
        (
            self.kind,
            self._indexes,
            self.key,
            self.keys,
            self.exptime_s,
            self.amount,
            self.ok_code,
            self.generation,
            self.value,
            self.values,
            self.pairs,
        ) = parts

    def prefilled(self, position=0):
        """Whether a key is stored before anything is timed."""
        return self._indexes[position] < self._tape.prefill_count

    def verify(self, position, value):
        """Whether a value that was read is right for a key, at whatever length it was written."""
        if not self._tape.verified or value == self.values[position]:
            return True
        told = 0 if position else self.generation  # the record tells that of the first key
        return self._tape.right(self._indexes[position], value, told)

    def failed(self):
        """Note that it failed: if it is a write, it may still come."""
        self._tape.accept_any()


class Operations:
    """The operations of a tape; `names` are the keys as the library takes them."""

    def __init__(self, tape, names):
        self._tape, self._names = tape, names
        self._values = {}  # what was cut from the pool, shared by all operations

    def lane(self, lane, lanes):
        """A function that gives a lane's operations from the first.

        All are made now, or where that would not fit each just before its turn.
        """
        tape, numbers = self._tape, self._tape.numbers(lane, lanes)
        if sum(tape.lengths) + _OPERATION_BYTES * len(numbers) > _HELD_BYTES:
            return lambda: (Operation(tape, j, self._parts(tape.raw(j), {})) for j in numbers)
        # Most records are there many times.
        records = list(map(tape.raw, numbers))
        parts = {record: self._parts(record, self._values) for record in set(records)}
        ready = [Operation(tape, j, parts[of]) for j, of in zip(numbers, records)]
        return lambda: ready

    def prefill(self, lane, lanes):
        """The writes that store a lane's keys, made one by one."""
        tape = self._tape
        for k in range(lane, tape.prefill_count, lanes):
            values = [COUNTER if k >= tape.first_counter else tape.value(k, tape.lengths[k])]
            own = _ok_code(values, 0), 0, values
            yield Operation(tape, k, _parts("set", [k], [self._names[k]], tape.exptime_s, 0, *own))

    def facts(self, number):
        """Of a record: its kind, how many keys it names, and their bytes."""
        name, quiet, keys, _, _, _ = self._tape.record(number)
        return name + "_noreply" * quiet, len(keys), sum(len(self._tape.keys[k]) for k in keys)

    def prefill_facts(self, key):
        """The same of the write that stores a key before anything is timed."""
        return "set", 1, len(self._tape.keys[key])

    def _parts(self, record, kept):
        """What operations with the same record have in common, in the order of `Operation`."""
        tape = self._tape
        name, quiet, keys, length, exptime_s, generation = tape.fields(record)
        kind, names = name + "_noreply" * quiet, [self._names[k] for k in keys]
        if name in _WITHOUT_VALUE:
            ok_code = 0 if quiet else len(keys)
            return _parts(kind, keys, names, exptime_s, length, ok_code)
        own = name in READS or name == "mset"  # the length of the table, not of the record
        lengths = (tape.lengths[k] if own else length for k in keys)
        told = chain([generation], repeat(0))
        values = [_cut(tape, which, kept) for which in zip(keys, lengths, told)]
        found = len(keys) if name in READS else 0
        pairs = dict(zip(names, values)) if name in BATCHES else None
        ok_code = _ok_code(values, found)
        return _parts(kind, keys, names, exptime_s, 0, ok_code, generation, values, pairs)


def _parts(kind, indexes, names, exptime_s, amount, ok_code, generation=0, values=(), pairs=None):  # noqa: PLR0917
    key, value = names[0] if names else None, values[0] if values else None
    own = kind, indexes, key, names, exptime_s, amount, ok_code, generation
    return (*own, value, values, pairs)


def _ok_code(values, found):
    """The code of a right reply that brings or stores these values: `found` keys were found."""
    return sum(map(len, values)) << SIZE_BIT | found


def _cut(tape, which, kept):
    value = kept.get(which)
    if value is None:
        value = kept[which] = tape.value(*which)
    return value
