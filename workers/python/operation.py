"""The records of a tape as operations: in a library's own terms, made before they are measured."""

from __future__ import annotations

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

    def __init__(self, tape, number, kind, indexes, names, exptime_s):  # noqa: PLR0917
        self._tape = tape
        self._indexes = indexes
        self.number = number
        self.kind = kind
        self.keys = names
        self.key = names[0] if names else None
        self.exptime_s = exptime_s
        self.values, self.value, self.pairs = (), None, None
        self.amount = self.ok_code = self.generation = 0

    def carry(self, values, found):
        """Give it its values; a reply that is right says that `found` keys were found."""
        self.values, self.value = values, values[0]
        self.ok_code = sum(map(len, values)) << SIZE_BIT | found

    def prefilled(self, position=0):
        """Whether a key is stored before anything is timed."""
        return self._indexes[position] < self._tape.prefill_count

    def verify(self, position, value):
        """Whether a value that was read is right for a key, at whatever length it was written."""
        if not self._tape.verified or value == self.values[position]:
            return True
        return self._tape.right(self._indexes[position], value, self.generation)

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
        numbers = self._tape.numbers(lane, lanes)
        if sum(self._tape.lengths) + _OPERATION_BYTES * len(numbers) > _HELD_BYTES:
            return lambda: (self._made(j, {}) for j in numbers)
        ready = [self._made(j, self._values) for j in numbers]
        return lambda: ready

    def prefill(self, lane, lanes):
        """The writes that store a lane's keys, made one by one."""
        tape = self._tape
        for k in range(lane, tape.prefill_count, lanes):
            op = Operation(tape, k, "set", [k], [self._names[k]], tape.exptime_s)
            counter = k >= tape.first_counter
            op.carry([COUNTER if counter else tape.value(k, tape.lengths[k])], 0)
            yield op

    def facts(self, number):
        """Of a record: its kind, how many keys it names, and their bytes."""
        name, quiet, keys, _, _, _ = self._tape.record(number)
        return name + "_noreply" * quiet, len(keys), sum(len(self._tape.keys[k]) for k in keys)

    def prefill_facts(self, key):
        """The same of the write that stores a key before anything is timed."""
        return "set", 1, len(self._tape.keys[key])

    def _made(self, number, kept):
        tape = self._tape
        name, quiet, keys, length, exptime_s, generation = tape.record(number)
        names = [self._names[k] for k in keys]
        op = Operation(tape, number, name + "_noreply" * quiet, keys, names, exptime_s)
        if name in _WITHOUT_VALUE:
            op.amount, op.ok_code = length, 0 if quiet else len(keys)
            return op
        own = name in READS or name == "mset"  # the length of the table, not of the record
        lengths = (tape.lengths[k] if own else length for k in keys)
        values = [_cut(tape, (*which, generation), kept) for which in zip(keys, lengths)]
        op.generation = generation
        op.carry(values, len(keys) if name in READS else 0)
        if name in BATCHES:
            op.pairs = dict(zip(names, values))
        return op


def _cut(tape, which, kept):
    value = kept.get(which)
    if value is None:
        value = kept[which] = tape.value(*which)
    return value
