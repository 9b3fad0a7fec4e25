"""A window: when a run begins, what ends it, and how to wait for an instant in it."""

from __future__ import annotations

import time

clock = time.perf_counter_ns
FOR_EVER_NS = 1 << 62
# Sleeping is late by some tens of µs; the rest of a wait is spent asking the clock.
SPIN_NS = 200_000
# A wait looks this often whether it is still wanted.
_LOOK_NS = 20_000_000


class Window:
    """Shared by the lanes of a run or slice. `end_ns` moves to the past when it is stopped.

    What a slice's lead-in does is not counted; it ends at `lead_in_end_ns`.
    """

    def __init__(self, start_ns, duration_ns, timeout_ns, lead_in_ns=0):
        self.start_ns = start_ns
        self.duration_ns = duration_ns
        self.planned_end_ns = FOR_EVER_NS if duration_ns is None else start_ns + duration_ns
        self.end_ns = self.planned_end_ns
        self.lead_in_ns = lead_in_ns
        self.lead_in_end_ns = start_ns + lead_in_ns
        # The middle of what a slice counts.
        self.middle_ns = (self.lead_in_end_ns + self.planned_end_ns) // 2
        self.stopped = False
        self.timeout_ns = timeout_ns

    def stop(self):
        self.stopped = True
        self.planned_end_ns = self.end_ns = min(self.planned_end_ns, clock())

    @property
    def drain_ns(self):
        """After this instant, the rest of an open loop's window is never sent."""
        return self.end_ns if self.stopped else self.end_ns + 2 * self.timeout_ns


def wait_until(instant_ns, window):
    """Wait for an instant. False if the run was stopped before it came."""
    while True:
        left_ns = instant_ns - clock()
        if left_ns <= 0:
            return True
        if window.stopped:
            return False
        # A sleep of nothing gives the interpreter to another lane: that one may have a reply.
        time.sleep(min(left_ns - SPIN_NS, _LOOK_NS) / 1e9 if left_ns > SPIN_NS else 0)
