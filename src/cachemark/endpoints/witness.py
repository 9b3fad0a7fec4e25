"""Lower bounds for a worker's window, seen from outside, however late its messages are.

A worker sent a message after its pipe was last seen empty, and before the message was read. It may
report progress while it sums up, but then its number of operations no longer rises. So the window
was still open at a progress message if a later one has more operations.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from cachemark.host.cpu_meter import UNKNOWN_NS, CpuMeter

# Readings that are kept of a window, at equal steps.
_KEPT = 64
# A reading that takes longer is no instant.
_INSTANT_NS = 1_000_000


def look_pause_s(passed_s: float, longest_s: float) -> float:
    """How long to wait for the next look at a window: short ones show short windows, too."""
    return min(longest_s, max(0.02, passed_s / 3))


class WitnessReading(NamedTuple):
    """An instant, and the CPU time of a worker until then. `after_ns` is just after both."""

    at_ns: int
    cpu_ns: int
    after_ns: int


class Witness:
    """Watches one worker while it plays a phase that begins at `began_ns` or later.

    `duration_ns` is the length of a phase that ends by time alone. Instants are monotonic.
    """

    def __init__(self, pid: int, began_ns: int, duration_ns: int | None) -> None:
        self._meter = CpuMeter([pid])
        self._began_ns = began_ns
        self._readings: list[WitnessReading] = []
        self._least_end_ns = 0 if duration_ns is None else began_ns + duration_ns
        self._silent: WitnessReading | None = None
        self._told: tuple[int, WitnessReading] | None = None
        # The window had begun at `_first`, and had not ended at `_last`.
        self._first: WitnessReading | None = None
        self._last: WitnessReading | None = None

    def read(self) -> WitnessReading:
        """The worker's CPU time now; pass it to `silent` if no message has arrived since."""
        at_ns = time.monotonic_ns()
        reading = WitnessReading(at_ns, self._meter.read_ns(), time.monotonic_ns())
        if reading.after_ns <= self._least_end_ns:
            self._last = reading
        if reading.cpu_ns != UNKNOWN_NS and reading.after_ns - at_ns <= _INSTANT_NS:
            self._readings.append(reading)
        return reading

    @property
    def cpu_readings(self) -> Iterator[tuple[int, int]]:
        """Instants since the begin of the phase, and the CPU time until then."""
        for reading in self._readings[:: 1 + len(self._readings) // _KEPT]:
            yield reading.at_ns - self._began_ns, reading.cpu_ns

    def silent(self, reading: WitnessReading) -> None:
        """Note that the worker's pipe was empty after a reading."""
        self._silent = reading

    def progress(self, ops: int) -> None:
        """Note the number of finished operations that the worker has reported."""
        if ops and self._first is None:
            self._first = self.read()
        if self._told and ops > self._told[0]:
            told = self._told[1]
            if self._last is None or told.at_ns > self._last.at_ns:
                self._last = told
        if self._silent and (self._told is None or ops > self._told[0]):
            self._told = ops, self._silent

    @property
    def lasted_ns(self) -> int:
        """A lower bound of the window's length."""
        first, last = self._first, self._last
        return max(0, last.at_ns - first.after_ns) if first and last else 0

    @property
    def cpu_ns(self) -> int | None:
        """A lower bound of the CPU time in the window; None if unknown."""
        first, last = self._first, self._last
        if not first or not last or UNKNOWN_NS in (first.cpu_ns, last.cpu_ns):
            return None
        return max(0, last.cpu_ns - first.cpu_ns)
