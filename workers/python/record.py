"""What a lane notes while it is measured, and what it comes to afterwards.

Noting is three appends to arrays of machine numbers; counting and histograms come after the window.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from itertools import repeat

from hdrh.histogram import HdrHistogram

from judge import ERRORS, FOUND_MASK, SIZE_BIT, TIMEOUT, WRONG
from tape import READS
from window import clock

LOWEST_NS, HIGHEST_NS, DIGITS = 1, 100_000_000_000, 3
FIGURES = (
    "attempts",
    "ok",
    "hits",
    "misses",
    "not_stored",
    "wrong_values",
    "keys",
    "value_bytes",
    "key_bytes",
    "busy_ns",
)
_LOOKS_UP = READS | {"delete", "touch"}


class Record:
    """The notes of one lane."""

    def __init__(self):
        self.numbers = array("Q")  # which record of the tape
        self.codes = array("q")  # what it came to, see judge.py
        self.times = array("Q")  # ns from its call to its end
        self.lags = array("Q")  # open loop: ns from its due instant to its call
        self.unsent = []  # open loop: (number, ns that it waited) of what was never sent
        self.failed = self.bound = self.peak = self.barriers = 0
        self.sent_ns = self.ended_ns = 0

    def end_quiet(self, barrier):
        """End operations that had no reply by commands that have one."""
        try:
            self.barriers = barrier() if self.numbers else 0
        except Exception as error:  # the server is gone, and with it what was sent last
            print(f"no answer after the last operations without one: {error!r}", file=sys.stderr)
        else:
            self.ended_ns = clock() if self.barriers else self.ended_ns


def encode(counts):
    """A histogram of values and their counts as it travels; None if there are none."""
    if not counts:
        return None
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for value, count in counts.items():
        histogram.record_value(min(max(value, LOWEST_NS), HIGHEST_NS), count)
    return histogram.encode().decode()


class Sum:
    """The counts of one kind of operation over all lanes."""

    def __init__(self):
        self.figures = dict.fromkeys(FIGURES, 0)
        self.errors = Counter()
        self.service, self.response = Counter(), Counter()

    def add(self, facts, code, time_ns, lag_ns):
        figures, (kind, keys, key_bytes) = self.figures, facts
        figures["attempts"] += 1
        if code >= 0 or code == TIMEOUT:
            self.service[time_ns] += 1
            self.response[time_ns + lag_ns] += 1
        if code == WRONG:
            figures["wrong_values"] += 1
        elif code < 0:
            self.errors[ERRORS[code]] += 1
        else:
            found = code & FOUND_MASK
            figures["ok"] += 1
            figures["keys"] += keys
            figures["key_bytes"] += key_bytes
            figures["value_bytes"] += code >> SIZE_BIT
            figures["busy_ns"] += time_ns
            if kind in _LOOKS_UP:
                figures["hits"] += found
                figures["misses"] += keys - found
            else:
                figures["not_stored"] += found

    def message(self):
        service = encode(self.service)
        # In a closed loop the two are the same samples.
        response = service if self.response == self.service else encode(self.response)
        return {**self.figures, "errors": dict(self.errors), "response": response,
                "service": service}  # fmt: skip


def summed(records, facts_of):
    """The operations of all lanes by kind, as they are sent; `facts_of` tells of a number."""
    sums, known = {}, {}
    for record in records:
        lags = record.lags or repeat(0)
        for number, code, time_ns, lag_ns in zip(record.numbers, record.codes, record.times, lags):
            facts = known.get(number)
            if facts is None:
                facts = known[number] = facts_of(number)
            kind = facts[0]
            if kind not in sums:
                sums[kind] = Sum()
            sums[kind].add(facts, code, time_ns, lag_ns)
        for number, waited_ns in record.unsent:
            kind = facts_of(number)[0]
            sums.setdefault(kind, Sum()).response[waited_ns] += 1
    return {kind: total.message() for kind, total in sums.items()}
