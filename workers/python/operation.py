"""The records of a tape as operations with a library's arguments, prepared before the window."""

from __future__ import annotations

from functools import cache
from itertools import chain, repeat

from tape import BATCHES, COUNTER, READS, STEPS
from verify import SIZE_BIT

# Operations are prepared before a window unless they would take more memory than this.
_HELD_BYTES = 1 << 30
_OPERATION_BYTES = 500
_WITHOUT_VALUE = {*STEPS, "delete", "touch", "version"}


class Operation:
    """One operation of a lane, for client files.

    `key`/`keys` are in the library's form; `value`/`values` are to write, or must be the result of
    a read; `pairs` joins them for a batch; `amount` is a counter's step. `ok_code` is the code of a
    right result.
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
        """Whether the prefill stores a key."""
        return self._indexes[position] < self._tape.prefill_count

    def verify(self, position, value):
        """Whether a value that was read is right for a key, at any length that a write has."""
        if not self._tape.verified or value == self.values[position]:
            return True
        told = 0 if position else self.generation  # the record tells that of the first key
        return self._tape.right(self._indexes[position], value, told)

    def failed(self):
        """Note that it failed: a write may still arrive."""
        self._tape.accept_any()


class Operations:
    """The operations of a tape; `names` are the keys in the library's form."""

    def __init__(self, tape, names):
        self._tape, self._names = tape, names
        self._values = {}  # values cut from the pool, shared by all operations
        self._facts_of = cache(self._facts)  # most records occur many times

    def lane(self, lane, lanes):
        """A function that yields a lane's operations from the first.

        It makes all of them now or, if memory is too small, each just before its turn.
        """
        tape, numbers = self._tape, self._tape.numbers(lane, lanes)
        if sum(tape.lengths) + _OPERATION_BYTES * len(numbers) > _HELD_BYTES:
            return lambda: (Operation(tape, j, self._parts(tape.raw(j), {})) for j in numbers)
        # Most records occur many times.
        records = list(map(tape.raw, numbers))
        parts = {record: self._parts(record, self._values) for record in set(records)}
        ready = [Operation(tape, j, parts[of]) for j, of in zip(numbers, records)]
        return lambda: ready

    def prefill(self, lane, lanes):
        """The writes that store a lane's keys, created one by one."""
        tape = self._tape
        for k in range(lane, tape.prefill_count, lanes):
            values = [COUNTER if k >= tape.first_counter else tape.value(k, tape.lengths[k])]
            own = _ok_code(values, 0), 0, values
            yield Operation(tape, k, _parts("set", [k], [self._names[k]], tape.exptime_s, 0, *own))

    def facts(self, number):
        """A record's kind, the number of its keys, and their bytes."""
        return self._facts_of(self._tape.raw(number))

    def _facts(self, record):
        name, quiet, keys, _, _, _ = self._tape.fields(record)
        return name + "_noreply" * quiet, len(keys), sum(len(self._tape.keys[k]) for k in keys)

    def prefill_facts(self, key):
        """The same for the prefill's write of a key."""
        return "set", 1, len(self._tape.keys[key])

    def _parts(self, record, kept):
        """The common fields of operations with the same record, in the order of `Operation`."""
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
    """The code of a right reply that reads or stores these values: `found` keys were found."""
    return sum(map(len, values)) << SIZE_BIT | found


def _cut(tape, which, kept):
    value = kept.get(which)
    if value is None:
        value = kept[which] = tape.value(*which)
    return value
