"""A measured window as it goes: each second the server's CPU, memory and counters, and the rate.

It runs in a thread of the orchestrator, which stands in no measured path, and asks over the
control connection that the trial keeps anyway. `stats` is no operation, so nothing of it is in the
counters that a trial is held against; it costs the server some µs in each second.
"""

from __future__ import annotations

import threading
import time

from cachemark.errors import TrialError
from cachemark.outcome import Sample
from cachemark.servers import RunningServer

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


class Sampler:
    """Samples from entering to leaving the context; whoever leaves waits for the last one."""

    def __init__(self, server: RunningServer, period_s: float = PERIOD_S) -> None:
        self.samples: list[Sample] = []
        self._server = server
        self._period_s = period_s
        self._ops: tuple[int, int] | None = None
        self._silent = False
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
        due = time.monotonic() + self._period_s
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self.samples.append(self._sample())
            # One that took longer than a period is not made up for.
            due = max(due + self._period_s, time.monotonic())

    def _sample(self) -> Sample:
        use = self._server.use()
        ops, told_unix_ns = self._ops or (None, None)
        return Sample(
            unix_ns=time.time_ns(),
            ops=ops,
            ops_unix_ns=told_unix_ns,
            cpu_ns=use.cpu_ns if use else None,
            rss_bytes=use.rss_bytes if use else None,
            threads=use.threads if use else None,
            stats=self._stats(),
        )

    def _stats(self) -> dict[str, int]:
        """Empty once the server has failed to answer: the trial itself will say why."""
        if self._silent:
            return {}
        try:
            return kept(self._server.stats())
        except TrialError:
            self._silent = True
            return {}


def kept(stats: dict[str, str]) -> dict[str, int]:
    """The counters that are kept, where the server tells them as numbers. Pure."""
    return {name: int(stats[name]) for name in KEPT if stats.get(name, "").isdecimal()}
