"""The records of a lane in the window, and their sums afterwards.

A record is three appends to arrays of machine numbers; counts and histograms come after the window.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from itertools import compress

from call_log import keep_wrong
from histogram import encode
from tape import READS, STEPS
from verify import ERRORS, FOUND_MASK, SIZE_BIT, TIMEOUT, WRONG
from window import clock

FIGURES = ("attempts", "ok", "hits", "misses", "not_stored", "wrong_values", "keys", "value_bytes",
           "key_bytes", "busy_ns")  # fmt: skip
_LOOKS_UP = READS | STEPS | {"delete", "touch"}


class Recorder:
    """The records of one lane."""

    def __init__(self, timeline, with_begins=False):
        self.timeline = timeline
        # The begin of each call, for groups.py and call_log.py.
        self.begins = array("Q") if with_begins else None
        self.wrong = []  # (number, answer) of the first wrong values, for call_log.py
        self.firsts = [0]  # slices: number of operations before each
        self.numbers = array("Q")  # the number of its record on the tape
        self.codes = array("q")  # its result, see verify.py
        self.times = array("Q")  # ns from its call to its end
        self.lags = array("Q")  # open loop: ns from its due instant to its call
        self.unsent = []  # open loop: (number, ns waited) of operations that were never sent
        self.lead_in = array("Q")  # slices: the places of operations that do not count
        self.failed = self.queued = self.peak = self.barriers = 0
        self.sent_ns = self.ended_ns = 0

    def fail(self, op, code, answer):
        """Record a call that failed; `answer` is the library's result, if it is a wrong value."""
        self.failed += 1
        if code != WRONG:
            op.failed()
        if code == WRONG and self.begins is not None:
            keep_wrong(self.wrong, op.number, answer)

    def end_quiet(self, barrier):
        """Send commands with a reply after operations without one."""
        try:
            self.barriers += barrier() if self.numbers else 0
        except Exception as error:  # the server is gone, with the last operations
            print(f"no answer after the last operations without one: {error!r}", file=sys.stderr)
        else:
            self.ended_ns = clock() if self.barriers else self.ended_ns


class Sum:
    """The figures of one kind of operation over all lanes."""

    def __init__(self, kind):
        self._kind = kind
        self._figures = dict.fromkeys(FIGURES, 0)
        self._errors = Counter()
        self._service, self._response = array("Q"), array("Q")

    def count(self, times, code, keys, key_bytes):
        """Count `times` operations with the result `code`."""
        figures, found = self._figures, code & FOUND_MASK
        figures["attempts"] += times
        if code == WRONG:
            figures["wrong_values"] += times
        elif code < 0:
            self._errors[ERRORS[code]] += times
        else:
            figures["ok"] += times
            figures["keys"] += times * keys
            figures["key_bytes"] += times * key_bytes
            figures["value_bytes"] += times * (code >> SIZE_BIT)
            if self._kind in _LOOKS_UP:
                figures["hits"] += times * found
                figures["misses"] += times * (keys - found)
            elif self._kind == "cas":
                figures["hits" if found else "misses"] += times
                figures["not_stored"] += times * (found == 2)
            else:
                figures["not_stored"] += times * found

    def took(self, times_ns, lags_ns, completed):
        """Add the durations of calls and, in an open loop, their delays."""
        self._service.extend(times_ns)
        self._response.extend(map(int.__add__, times_ns, lags_ns))
        self._figures["busy_ns"] += sum(times_ns) if completed else 0

    def waited(self, time_ns):
        """Add the wait of an operation that was never sent."""
        self._response.append(time_ns)

    def message(self):
        """Its message. In a closed loop response and service are the same samples."""
        service = encode(self._service)
        response = encode(self._response) if self._response else service
        return {**self.untimed(), "response": response, "service": service}

    def untimed(self):
        """The same without histograms."""
        return {**self._figures, "errors": dict(self._errors)}


class _Places(dict):
    """The place of the facts of each number of the tape in `facts`: like operations share one."""

    def __init__(self, facts_of):
        self._facts_of, self.facts = facts_of, {}

    def __missing__(self, number):
        self[number] = place = self.facts.setdefault(self._facts_of(number), len(self.facts))
        return place


def summed(records, facts_of):
    """The sums of all lanes by kind; `facts_of` returns the facts of a number."""
    sums, places = {}, _Places(facts_of)

    def sum_of(kind):
        if kind not in sums:
            sums[kind] = Sum(kind)
        return sums[kind]

    for record in records:
        _add(record, places, sum_of)
        for number, waited_ns in record.unsent:
            sum_of(facts_of(number)[0]).waited(waited_ns)
    return sums


def _add(record, places, sum_of):
    """Add a lane's operations to the sums of their kinds.

    There may be millions, so only loops in C do anything for each.
    """
    alike = list(map(places.__getitem__, record.numbers))
    facts, timings, place = list(places.facts), {}, {}
    for outcome, times in Counter(zip(alike, record.codes)).items():
        (kind, keys, key_bytes), code = facts[outcome[0]], outcome[1]
        sum_of(kind).count(times, code, keys, key_bytes)
        # Of failed calls, only timeouts have a meaningful duration.
        timed = (kind, code >= 0) if code >= 0 or code == TIMEOUT else None
        place[outcome] = timings.setdefault(timed, len(timings))
    each = bytes(map(place.__getitem__, zip(alike, record.codes)))
    for timed, at in timings.items():
        if timed is None:
            continue
        mine = each.translate(bytes(of == at for of in range(256)))
        lags_ns = compress(record.lags, mine) if record.lags else ()
        sum_of(timed[0]).took(array("Q", compress(record.times, mine)), lags_ns, completed=timed[1])
