"""Samples of a measured window: each second the server's CPU, memory and counters, and the rate.

The sampler runs in a thread of the orchestrator, outside the measured path, and asks over the
trial's own control connection. The server does not count `stats` as an operation, so samples do
not change the counters that the verdict compares. A sample costs the server some µs a second.
"""

import threading
import time

from cachemark.analysis.verdict.conservation import executed_commands
from cachemark.endpoints.servers import RunningServer
from cachemark.endpoints.witness import look_pause_s
from cachemark.host.noise import NoiseMonitor
from cachemark.model.errors import TrialError
from cachemark.model.outcome import CommandCount, Sample
from cachemark.model.server_stats import ServerStats

PERIOD_S = 1.0
# The counters that change during a window, of the hundred or so that a server reports.
SAMPLED_COUNTERS = (
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
    """Samples from entering to leaving the context; leaving waits for the last sample.

    The server's counters are read every `tick_s` too, or at steps that grow. `noise` gets the CPU
    frequencies.
    """

    def __init__(
        self,
        server: RunningServer,
        period_s: float = PERIOD_S,
        *,
        tick_s: float | None = None,
        noise: NoiseMonitor | None = None,
    ) -> None:
        self.samples: list[Sample] = []
        self.command_counts: list[CommandCount] = []
        self._tick_s = tick_s
        self._noise = noise
        self._server = server
        self._period_s = period_s
        self._ops: tuple[int, int] | None = None
        self._silent = False
        self.began_unix_ns = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        # The control connection is one: no other thread may ask on it before this thread is done.
        self._thread.join()

    def note_progress(self, ops: int) -> None:
        """Note the number of operations that the workers have reported."""
        self._ops = (ops, time.time_ns())

    def _run(self) -> None:
        began, self.began_unix_ns = time.monotonic(), time.time_ns()
        sample_due = began + self._period_s
        tick_due = began + look_pause_s(0, PERIOD_S)
        while not self._ended.wait(max(0.0, min(sample_due, tick_due) - time.monotonic())):
            now = time.monotonic()
            # A sample that took longer than a period is not made up for.
            if now >= sample_due:
                self.samples.append(self._sample())
                sample_due = max(sample_due + self._period_s, time.monotonic())
            if now >= tick_due:
                self._tick(began)
                tick_s = self._tick_s or look_pause_s(now - began, PERIOD_S)
                tick_due = max(tick_due + tick_s, time.monotonic())

    def _tick(self, began: float) -> None:
        asked = time.monotonic()
        done = executed_commands(self._read_stats())
        if done is not None:
            at_ns, took_ns = (round((time.monotonic() - it) * 1e9) for it in (began, asked))
            counted = CommandCount(at_ns=at_ns, took_ns=took_ns, commands=done)
            self.command_counts.append(counted)

    def _sample(self) -> Sample:
        if self._noise:
            self._noise.sample_frequencies()
        use = self._server.use()
        ops, reported_unix_ns = self._ops or (None, None)
        return Sample(
            unix_ns=time.time_ns(),
            ops=ops,
            ops_unix_ns=reported_unix_ns,
            cpu_ns=use.cpu_ns if use else None,
            rss_bytes=use.rss_bytes if use else None,
            threads=use.threads if use else None,
            stats=sampled_counters(self._read_stats()),
        )

    def _read_stats(self) -> ServerStats:
        """Empty once the server has failed to answer: the trial itself will say why."""
        if self._silent:
            return ServerStats()
        try:
            return self._server.stats()
        except TrialError:
            self._silent = True
            return ServerStats()


def sampled_counters(stats: ServerStats) -> dict[str, int]:
    """The counters for samples, if the server reports them as numbers. Pure."""
    counters = {name: stats.number(name) for name in SAMPLED_COUNTERS}
    return {name: value for name, value in counters.items() if value is not None}
