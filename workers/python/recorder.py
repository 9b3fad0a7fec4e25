"""What a lane notes while it is measured, and what it comes to afterwards.

Noting is three appends to arrays of machine numbers; counting and histograms come after the window.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from itertools import compress, repeat

from call_log import keep_wrong
from histogram import encode
from tape import READS, STEPS
from verify import ERRORS, FOUND_MASK, SIZE_BIT, TIMEOUT, WRONG
from window import clock

FIGURES = ("attempts", "ok", "hits", "misses", "not_stored", "wrong_values", "keys", "value_bytes",
           "key_bytes", "busy_ns")  # fmt: skip
_LOOKS_UP = READS | STEPS | {"delete", "touch"}


class Recorder:
    """The notes of one lane."""

    def __init__(self, timeline, with_begins=False):
        self.timeline = timeline
        # When each call began: for groups.py and call_log.py.
        self.begins = array("Q") if with_begins else None
        self.wrong = []  # (number, answer) of the first wrong values, for call_log.py
        self.firsts = [0]  # slices: how many were noted before each
        self.numbers = array("Q")  # which record of the tape
        self.codes = array("q")  # what it came to, see verify.py
        self.times = array("Q")  # ns from its call to its end
        self.lags = array("Q")  # open loop: ns from its due instant to its call
        self.unsent = []  # open loop: (number, ns that it waited) of what was never sent
        self.lead_in = array("Q")  # slices: the places of what is not counted
        self.failed = self.queued = self.peak = self.barriers = 0
        self.sent_ns = self.ended_ns = 0

    def fail(self, op, code, answer):
        """A call that failed; `answer` is what the library returned, if it is a wrong value."""
        self.failed += 1
        if code != WRONG:
            op.failed()
        if code == WRONG and self.begins is not None:
            keep_wrong(self.wrong, op.number, answer)

    def end_quiet(self, barrier):
        """End operations that had no reply by commands that have one."""
        try:
            self.barriers += barrier() if self.numbers else 0
        except Exception as error:  # the server is gone, and with it what was sent last
            print(f"no answer after the last operations without one: {error!r}", file=sys.stderr)
        else:
            self.ended_ns = clock() if self.barriers else self.ended_ns


class Sum:
    """The figures of one kind of operation over all lanes."""

    def __init__(self, kind):
        self._kind = kind
        self._figures = dict.fromkeys(FIGURES, 0)
        self._errors = Counter()
        self._service, self._response = Counter(), Counter()

    def count(self, times, code, keys, key_bytes):
        """So many operations that all came to `code`."""
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

    def took(self, times_ns, lags_ns, completed=True):
        """How long operations lasted, from their calls and from when they were due."""
        self._service.update(times_ns)
        self._response.update(map(int.__add__, times_ns, lags_ns))
        self._figures["busy_ns"] += sum(times_ns) if completed else 0

    def waited(self, time_ns):
        """How long an operation waited that was never sent."""
        self._response[time_ns] += 1

    def message(self):
        """As it is sent. In a closed loop response and service are the same samples."""
        service = encode(self._service)
        response = service if self._response == self._service else encode(self._response)
        return {**self._figures, "errors": dict(self._errors), "response": response,
                "service": service}  # fmt: skip


def summed(records, facts_of):
    """The operations of all lanes by kind, as they are sent; `facts_of` tells of a number."""
    sums, facts = {}, {}

    def sum_of(number):
        if number not in facts:
            facts[number] = facts_of(number)
        kind = facts[number][0]
        return sums.setdefault(kind, Sum(kind))

    for record in records:
        outcomes = list(zip(record.numbers, record.codes))
        timed = {}  # the sum that an outcome's time belongs to, and whether it was completed
        for (number, code), times in Counter(outcomes).items():
            total = sum_of(number)
            total.count(times, code, *facts[number][1:])
            if code >= 0 or code == TIMEOUT:  # a timeout counts as long as it lasted
                timed[number, code] = total, code >= 0
        belongs = [timed.get(outcome) for outcome in outcomes]
        for total, completed in set(timed.values()):
            mine = [place == (total, completed) for place in belongs]
            lags_ns = compress(record.lags, mine) if record.lags else repeat(0)
            total.took(list(compress(record.times, mine)), lags_ns, completed)
        for number, waited_ns in record.unsent:
            sum_of(number).waited(waited_ns)
    return {kind: total.message() for kind, total in sums.items()}
