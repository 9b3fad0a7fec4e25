"""Pauses as a thread sees them that sleeps: processes that are stopped, a machine that halts."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from cachemark.host import counters
from cachemark.host.files import read

# Less than this is the normal delay of the timer and the interpreter.
FLOOR_NS = 1_000_000
# The scheduler's account is read so often, so that it tells little of what was long ago.
_FRESH_NS = 1_000_000_000


class Pauses:
    """Sums up pauses: call `watch`, then `slept` after each sleep."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._pids: Sequence[int] = ()
        self._waited_ns: int | None = None
        self._read_at_ns = 0
        self.stopped_ns = 0
        self.longest_halt_ns: int | None = None

    def watch(self, pids: Sequence[int]) -> None:
        """From now on look at these processes, and forget what was seen so far."""
        self._pids, self.stopped_ns, self.longest_halt_ns = pids, 0, None
        now_ns = time.monotonic_ns()
        if now_ns - self._read_at_ns > _FRESH_NS:
            self._read_at_ns, self._waited_ns = now_ns, self._waited()

    def slept(self, wanted_ns: int, took_ns: int) -> None:
        """A thread of this process has slept: the requested and the real duration.

        A process that is stopped now was so while it slept.
        """
        if any(is_stopped(pid, self._root) for pid in self._pids):
            self.stopped_ns += took_ns
        late_ns = took_ns - wanted_ns
        if late_ns <= FLOOR_NS:
            return
        before, self._waited_ns = self._waited_ns, self._waited()
        if before is not None and self._waited_ns is not None:
            # Another thread may have waited for a CPU with the interpreter's lock: all count.
            halted_ns = max(0, late_ns - max(0, self._waited_ns - before))
            self.longest_halt_ns = max(self.longest_halt_ns or 0, halted_ns)

    def _waited(self) -> int | None:
        """How long this process's threads were runnable without a CPU, in ns; None: not known."""
        scheduled = counters.run_and_wait_ns([os.getpid()], self._root)
        return scheduled[1] if scheduled else None


def is_stopped(pid: int, root: Path = Path("/")) -> bool:
    """Whether a signal or a debugger has stopped a process."""
    # The name in parentheses may hold anything, also spaces and parentheses.
    state = read(root / f"proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] in ("T", "t")
