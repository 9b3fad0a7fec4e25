"""A measured window as it goes: each second the server's CPU, memory and counters, and the rate.

It runs in a thread of the orchestrator, which stands in no measured path, and asks over the
control connection that the trial keeps anyway. `stats` is no operation, so nothing of it is in the
counters that a trial is held against; it costs the server some µs in each second.
"""

from __future__ import annotations

import math
import threading
import time

from cachemark.analysis.verdict.conservation import commands
from cachemark.endpoints.servers import RunningServer
from cachemark.host import NoiseProbe
from cachemark.model.errors import TrialError
from cachemark.model.outcome import Sample, Tick

PERIOD_S = 1.0
# Of the hundred or so that a server tells: what moves while it is measured.
KEPT = (
    "cmd_get",
    "cmd_set",
    "get_hits",
    "get_misses",
    "evictions",
    "curr_items",
    "curr_connections",
    "bytes",
)


# How long a nap is: a pause of the machine is seen where one ends in it. Each costs a measured
# thread some µs of its CPU where there is none to spare, so there are far too few to show in p99.9.
_NAP_S = 0.1


class Sampler:
    """Samples from entering to leaving the context; whoever leaves waits for the last one.

    Where the worker tells nothing of a window's course, the server's counters are read every
    `tick_s`, too. Between all that it naps, and `noise` is told how late it woke.
    """

    def __init__(
        self,
        server: RunningServer,
        period_s: float = PERIOD_S,
        *,
        tick_s: float | None = None,
        noise: NoiseProbe | None = None,
    ) -> None:
        self.samples: list[Sample] = []
        self.ticks: list[Tick] = []
        self._tick_s = tick_s
        self._noise = noise
        self._server = server
        self._period_s = period_s
        self._ops: tuple[int, int] | None = None
        self._silent = False
        self.began_unix_ns = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        # The control connection is one: nobody else may ask on it before this thread is done.
        self._thread.join()

    def heard(self, ops: int) -> None:
        """The workers have told how many operations they have done."""
        self._ops = (ops, time.time_ns())

    def _run(self) -> None:
        began, self.began_unix_ns = time.monotonic(), time.time_ns()
        sample_due = began + self._period_s
        tick_due = math.inf if self._tick_s is None else began + self._tick_s
        while not self._nap(min(sample_due, tick_due)):
            now = time.monotonic()
            # One that took longer than a period is not made up for.
            if now >= sample_due:
                self.samples.append(self._sample())
                sample_due = max(sample_due + self._period_s, time.monotonic())
            if self._tick_s is not None and now >= tick_due:
                self._tick(began)
                tick_due = max(tick_due + self._tick_s, time.monotonic())

    def _nap(self, until: float) -> bool:
        """Sleep for a nap, or until something is due; true when the window has ended."""
        begin = time.monotonic()
        length = max(0.0, min(_NAP_S, until - begin))
        if self._ended.wait(length):
            return True
        if self._noise:
            took = time.monotonic() - begin
            self._noise.pauses.slept(round(length * 1e9), round(took * 1e9))
        return False

    def _tick(self, began: float) -> None:
        done = commands(self._asked())
        if done is not None:
            at_ns = round((time.monotonic() - began) * 1e9)
            self.ticks.append(Tick(at_ns=at_ns, commands=done))

    def _sample(self) -> Sample:
        if self._noise:
            self._noise.glance()
        use = self._server.use()
        ops, told_unix_ns = self._ops or (None, None)
        return Sample(
            unix_ns=time.time_ns(),
            ops=ops,
            ops_unix_ns=told_unix_ns,
            cpu_ns=use.cpu_ns if use else None,
            rss_bytes=use.rss_bytes if use else None,
            threads=use.threads if use else None,
            stats=kept(self._asked()),
        )

    def _asked(self) -> dict[str, str]:
        """Empty once the server has failed to answer: the trial itself will say why."""
        if self._silent:
            return {}
        try:
            return self._server.stats()
        except TrialError:
            self._silent = True
            return {}


def kept(stats: dict[str, str]) -> dict[str, int]:
    """The counters that are kept, where the server tells them as numbers. Pure."""
    return {name: int(stats[name]) for name in KEPT if stats.get(name, "").isdecimal()}
