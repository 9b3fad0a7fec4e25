"""What a trial yields: one frozen value, one JSON line."""

from __future__ import annotations

from typing import Literal

import msgspec

from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.protocol import Done, Ready

OUTCOME_FORMAT = 1

State = Literal["measured", "unsupported", "failed"]
Verdict = Literal["VALID", "INVALID", "OVERLOAD", "NON_STATIONARY"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an outcome; readers ignore fields they do not know."""


class Cell(Record, frozen=True, kw_only=True):
    """What is compared: one client, server, workload and load."""

    client: str
    server: str
    workload: str
    load: str


class Trial(Record, frozen=True, kw_only=True):
    """One run of one cell: its place in the plan."""

    index: int
    block: int
    cell: Cell
    tape_seed: int


class ServerFacts(Record, frozen=True, kw_only=True):
    """The server of a trial, as it ran.

    Several servers used as one, or one behind a proxy, are its `members`. `quirks` are deviations
    of its protocol that a client has to know, by name (see servers/quirks.py). `round_trip_ns` is
    the median time to open a connection to one that we did not start, before the trial.
    """

    kind: str
    version: str
    command: list[str]
    address: str
    cpus: str = ""
    quirks: list[str] = []
    round_trip_ns: int | None = None
    members: list[ServerFacts] = []


class Binary(Record, frozen=True, kw_only=True):
    """A program of a trial, by the hash of its file.

    `role` is `server`, `worker`, or `script` for a file that the worker's interpreter was given.
    """

    role: str
    path: str
    sha256: str


class ServerUse(Record, frozen=True, kw_only=True):
    """What the server spent in the measured window, from /proc; absent for a remote one.

    `rss_before_bytes` is of the empty server, before the trial's first operation.
    """

    cpu_ns: int
    rss_before_bytes: int
    rss_after_bytes: int
    rss_peak_bytes: int
    threads: int


class Sample(Record, frozen=True, kw_only=True):
    """A moment of the measured window, about one a second.

    `ops` is what the workers had told by then, last at `ops_unix_ns`: a rate is the difference of
    two over the difference of their times. CPU and `stats` are totals, as in `server_use` and
    `stats_before`; what cannot be had is None, or not in `stats`.
    """

    unix_ns: int
    ops: int | None = None
    ops_unix_ns: int | None = None
    cpu_ns: int | None = None
    rss_bytes: int | None = None
    threads: int | None = None
    stats: dict[str, int] = {}


class Finding(Record, frozen=True, kw_only=True):
    """What one rule found of a trial.

    `rule` never changes its name. INVALID, OVERLOAD and NON_STATIONARY are reasons of that verdict;
    `noise` is what disturbed a trial that counts all the same; `note` is good to know.
    """

    rule: str
    weight: Literal["INVALID", "OVERLOAD", "NON_STATIONARY", "noise", "note"]
    text: str
    figure: float | None = None
    limit: float | None = None
    unit: str = ""


class Level(Record, frozen=True, kw_only=True):
    """A part of the window with a level of its own: the median of its slices."""

    from_ms: float
    to_ms: float
    value: float


class Steadiness(Record, frozen=True, kw_only=True):
    """Whether a window was level: of its rate (1/s) in a closed loop, its response time (ns) else.

    An open loop that is judged by the server's counters has no response time by itself, only its
    rise above the least of its readings: those are its levels. `why` says why it was not judged.
    `warmup_end_ms` is where a window that began slower became level; `trend_percent` is the change
    over the whole window along its Theil-Sen line.
    """

    of: Literal["rate", "response"]
    source: Literal["worker", "server", "none"]
    slice_ms: float = 0.0
    slices: int = 0
    levels: list[Level] = []
    warmup_end_ms: float | None = None
    trend_percent: float | None = None
    kpss: float | None = None
    why: str = ""


class Tick(Record, frozen=True, kw_only=True):
    """How many commands the server had done by then; `at_ns` counts from the window's start.

    `due` is how many operations of an open loop were due by then.
    """

    at_ns: int
    commands: int
    due: int | None = None


class HostNoise(Record, frozen=True, kw_only=True):
    """What disturbed the measured window, from /proc; shares of all CPUs' time in the window.

    What could not be read is None: `foreign_cpu_percent` (other processes than the trial's) when a
    process of the trial ended in the window. `counters` are what the kernel counted in it, by the
    names of host/counters.py, or lack what it does not tell. `waited_percent` is how long the
    trial's own threads stood ready without a CPU, as a part of what they ran. A pause is what a
    thread slept longer than it was to, and only counts beyond 1 ms. `kernel_log` has the kernel's
    complaints of the window by their names in complaints.py; None where its log cannot be read.
    """

    steal_percent: float | None = None
    foreign_cpu_percent: float | None = None
    load_1min: float = 0.0
    window_ns: int = 0
    counters: dict[str, int] = {}
    waited_percent: float | None = None
    clock_step_ns: int | None = None
    longest_pause_ns: int | None = None
    paused_ns: int = 0
    mhz: tuple[float, float] | None = None
    kernel_log: dict[str, list[str]] | None = None


class TapeFacts(Record, frozen=True, kw_only=True):
    """Which tape was played."""

    seed: int
    sha256: str
    ops: int
    keys: int
    period_ns: int
    arguments: list[str]


class Outcome(Record, frozen=True, kw_only=True):
    """A trial and all that came of it.

    `measure_started_at` is when the measured window began; empty where there was none. `awake`:
    idle CPUs were kept from sleep.
    """

    format: int = OUTCOME_FORMAT
    run: str
    trial: Trial
    workload: Workload
    load: Load
    timing: Timing
    state: State
    reason: str = ""
    remedy: str = ""
    verdict: Verdict | None = None
    reasons: list[str] = []
    notes: list[str] = []
    findings: list[Finding] = []
    steadiness: Steadiness | None = None
    started_at: str = ""
    measure_started_at: str = ""
    wall_ms: int = 0
    worker: Ready | None = None
    wire: str = ""
    worker_command: list[str] = []
    worker_cpus: str = ""
    awake: bool = False
    binaries: list[Binary] = []
    server: ServerFacts | None = None
    tape: TapeFacts | None = None
    prefill: Done | None = None
    warmup: Done | None = None
    measure: Done | None = None
    stats_before: dict[str, str] = {}
    stats_after: dict[str, str] = {}
    server_use: ServerUse | None = None
    samples: list[Sample] = []
    noise: HostNoise | None = None
    host: str = ""
    log: str = ""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Outcome)


def to_line(outcome: Outcome) -> bytes:
    """Return the outcome as one JSON line, newline included."""
    return _encoder.encode(outcome) + b"\n"


def from_line(line: bytes) -> Outcome:
    """Read one outcome. Raises one of errors.UNREADABLE."""
    return _decoder.decode(line)
