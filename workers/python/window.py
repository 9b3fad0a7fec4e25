"""A window: the begin and the end of a run, and waiting for an instant in it."""

from __future__ import annotations

import time

clock = time.perf_counter_ns
FOR_EVER_NS = 1 << 62
# A sleep ends some tens of µs late, so the last part of a wait polls the clock.
SPIN_NS = 200_000
# A wait checks at this interval whether the run was stopped.
_LOOK_NS = 20_000_000


class Window:
    """Shared by the lanes of a run or slice. A stop moves `end_ns` to the past.

    Operations of a slice's lead-in, which ends at `lead_in_end_ns`, do not count.
    """

    def __init__(self, start_ns, duration_ns, timeout_ns, lead_in_ns=0):
        self.start_ns = start_ns
        self.duration_ns = duration_ns
        self.planned_end_ns = FOR_EVER_NS if duration_ns is None else start_ns + duration_ns
        self.end_ns = self.planned_end_ns
        self.lead_in_ns = lead_in_ns
        self.lead_in_end_ns = start_ns + lead_in_ns
        # The middle of a slice's counted part.
        self.middle_ns = (self.lead_in_end_ns + self.planned_end_ns) // 2
        self.stopped = False
        self.timeout_ns = timeout_ns

    def stop(self):
        self.stopped = True
        self.planned_end_ns = self.end_ns = min(self.planned_end_ns, clock())

    @property
    def drain_ns(self):
        """After this instant, an open loop sends no more operations of its window."""
        return self.end_ns if self.stopped else self.end_ns + 2 * self.timeout_ns


def wait_until(instant_ns, window):
    """Wait for an instant. False if the run was stopped before it came."""
    while True:
        left_ns = instant_ns - clock()
        if left_ns <= 0:
            return True
        if window.stopped:
            return False
        # A sleep of 0 s gives the interpreter to another lane, which may have a reply.
        time.sleep(min(left_ns - SPIN_NS, _LOOK_NS) / 1e9 if left_ns > SPIN_NS else 0)
