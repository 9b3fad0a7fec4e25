"""The counted part of a caller's slice: its begin, its length, and its first half."""

from __future__ import annotations

from window import FOR_EVER_NS


class LeadIn:
    """The lead-in of a caller's slice. The operation that ends it is its last one.

    A thread's lane has it in place of a timeline: the loop calls `advance` when it has ended.
    """

    def __init__(self, window, noted, in_process):
        self._window, self._in_process = window, in_process
        self._whole = window.lead_in_end_ns >= window.end_ns
        self._began_ns = None if window.lead_in_ns else window.start_ns
        self.first = noted
        self.counted_from = None if window.lead_in_ns else noted
        self._half = None  # the end of the first half, and the number of operations by then
        # When the loop calls `advance`: at the lead-in's end, then in the middle of the counted
        # part.
        self.end_ns = window.lead_in_end_ns if window.lead_in_ns else window.middle_ns
        if self._whole:
            self.end_ns = FOR_EVER_NS

    def look(self, now_ns):
        """The caller is about to begin. If it had no CPU until now, all its operations count."""
        if self.counted_from is None and now_ns >= self.end_ns:
            self._count(self.end_ns, self.first)

    def advance(self, now_ns, noted):
        """A part is over; the loop records its last operation next. Returns the next part's end."""
        if self.counted_from is None:
            # A call without a server waits for a CPU only.
            self._count(self.end_ns if self._in_process else now_ns, noted + 1)
        else:
            self._half, self.end_ns = (now_ns, noted + 1), FOR_EVER_NS
        return self.end_ns

    def _count(self, began_ns, first):
        self._began_ns, self.counted_from = began_ns, first
        self.end_ns = self._window.middle_ns

    def half(self, noted):
        """The first half's operations and its length, if the caller has recorded `noted` in all.

        It ends with the first completion after the middle; without one, in the middle.
        """
        if self._whole:
            return 0, 0
        window = self._window
        began_ns = window.lead_in_end_ns if self._began_ns is None else self._began_ns
        ended_ns, last = self._half or (min(window.middle_ns, window.end_ns), noted)
        ops = 0 if self.counted_from is None else last - self.counted_from
        return ops, max(0, ended_ns - began_ns)

    def elapsed_ns(self, ended_ns):
        """The length of the counted part, if the caller's last operation ended then.

        It ends with the slice at the earliest, to include time without a CPU.
        """
        if self._whole:
            return 0
        began_ns = self._window.lead_in_end_ns if self._began_ns is None else self._began_ns
        return max(0, max(ended_ns, self._window.end_ns) - began_ns)
