"""The timeline of a window: the operations that ended in each of a thousand slices.

A hundred slices are a section. In the window an operation costs a comparison: at the end of a
slice, the lane notes the number of its operations. Everything else comes after the window.
"""

from __future__ import annotations

from array import array
from collections import Counter

from verify import TIMEOUT
from window import FOR_EVER_NS

_SECTIONS, _SECTION_SLICES = 10, 100
_SLICES = _SECTIONS * _SECTION_SLICES
# Operations that end after a late open loop's window have slices too; the last has the rest.
_MAX_SLICES = 4 * _SLICES


class Timeline:
    """One lane's slices. A window that ends by a number of operations has none."""

    def __init__(self, window):
        self._start_ns = window.start_ns
        self.slice_ns = (window.duration_ns or 0) // _SLICES
        self.end_ns = self._start_ns + self.slice_ns if self.slice_ns else FOR_EVER_NS
        self._at = 0
        self._marks = []  # ended slices, with the number of operations by their end

    def advance(self, now_ns, noted):
        """Go on to the slice of an instant; returns the slice's end."""
        self._marks.append((self._at, noted))
        self._at = min((now_ns - self._start_ns) // self.slice_ns, _MAX_SLICES - 1)
        last = self._at == _MAX_SLICES - 1
        self.end_ns = FOR_EVER_NS if last else self._start_ns + (self._at + 1) * self.slice_ns
        return self.end_ns

    def slices(self, noted):
        """Each slice with operations: its number, the operations before it and by its end."""
        before = 0
        for at, by_then in [*self._marks, (self._at, noted)]:
            if by_then > before:
                yield at, before, by_then
            before = by_then


def summarise(records, encode):
    """The timeline of all lanes and its sections, for the message."""
    slice_ns = records[0].timeline.slice_ns
    if not slice_ns:
        return {"timeline": None, "sections": None}
    ok, response_ns = Counter(), Counter()
    in_section = [0] * _SECTIONS
    times = [array("Q") for _ in range(_SECTIONS)]
    for record in records:
        for at, first, last in record.timeline.slices(len(record.codes)):
            section = min(at // _SECTION_SLICES, _SECTIONS - 1)
            right, timed_ns = _ended(record, first, last, times[section])
            ok[at] += right
            response_ns[at] += timed_ns
            in_section[section] += right
        times[-1].extend(waited_ns for _, waited_ns in record.unsent)
    count = max(ok, default=0) + 1
    timeline = {
        "slice_ns": slice_ns,
        "ok": [ok[at] for at in range(count)],
        "response_ns": [response_ns[at] for at in range(count)],
    }
    sections = {
        "length_ns": slice_ns * _SECTION_SLICES,
        "ok": in_section,
        "response": [encode(each) for each in times],
    }
    return {"timeline": timeline, "sections": sections}


def _ended(record, first, last, times):
    """The number of successes and the sum of their response times; adds all times to `times`."""
    codes, took = record.codes[first:last], record.times[first:last]
    responses = list(map(int.__add__, took, record.lags[first:last])) if record.lags else took
    if min(codes) >= 0:
        times.extend(responses)
        return len(codes), sum(responses)
    right = [response for code, response in zip(codes, responses) if code >= 0]
    times.extend(right)
    times.extend(response for code, response in zip(codes, responses) if code == TIMEOUT)
    return len(right), sum(right)
