"""Where the counted part of a caller's slice begins, and how long it is."""

from __future__ import annotations

from window import FOR_EVER_NS


class LeadIn:
    """The lead-in of a caller's slice. The operation that ends it is its last one.

    A lane of threads has it in place of a timeline: the loop calls `advance` when it has ended.
    """

    def __init__(self, window, noted, in_process):
        self._window, self._in_process = window, in_process
        self._whole = window.lead_in_end_ns >= window.end_ns
        self._began_ns = None if window.lead_in_ns else window.start_ns
        self.first = noted
        self.counted_from = None if window.lead_in_ns else noted
        # When `advance` is to be called.
        waits = window.lead_in_ns and not self._whole
        self.end_ns = window.lead_in_end_ns if waits else FOR_EVER_NS

    def look(self, now_ns):
        """The caller is about to begin. If it had no CPU until now, all that it does is counted."""
        if now_ns >= self.end_ns:
            self._count(self.end_ns, self.first)

    def advance(self, now_ns, noted):
        """The lead-in is over; an operation is about to be noted. Returns the next end: never."""
        # A call that waits for no server waits for nothing but a CPU.
        self._count(self.end_ns if self._in_process else now_ns, noted + 1)
        return self.end_ns

    def _count(self, began_ns, first):
        self._began_ns, self.counted_from = began_ns, first
        self.end_ns = FOR_EVER_NS

    def elapsed_ns(self, ended_ns):
        """How long the counted part is, if the caller's last operation ended then.

        It is not over before the slice is, so that the time without a CPU belongs to it.
        """
        if self._whole:
            return 0
        began_ns = self._window.lead_in_end_ns if self._began_ns is None else self._began_ns
        return max(0, max(ended_ns, self._window.end_ns) - began_ns)
