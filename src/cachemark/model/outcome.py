"""The outcome of a trial: one frozen value, stored as one JSON line."""

from typing import Literal

import msgspec

from cachemark.model.distance import Distance
from cachemark.model.experiment import Load, Timing, Workload
from cachemark.model.outcome_format_1 import from_format_1
from cachemark.model.protocol import Done, Ready
from cachemark.model.rounds import Rounds
from cachemark.model.server_stats import ServerLoad, SlabClass
from cachemark.model.tape_facts import TapeFacts

OUTCOME_FORMAT = 2

State = Literal["measured", "unsupported", "failed"]
Verdict = Literal["VALID", "INVALID", "OVERLOAD", "NON_STATIONARY"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an outcome. Readers ignore fields that they do not know."""


class Cell(Record, frozen=True, kw_only=True):
    """A combination of client, server, workload and load: cells are compared."""

    client: str
    server: str
    workload: str
    load: str


class Trial(Record, frozen=True, kw_only=True):
    """One measurement of one cell, and its place in the plan.

    Trials with the same `sitting` were played in turns with each other; None: one after the other.
    """

    index: int
    block: int
    sitting: int | None = None
    cell: Cell
    tape_seed: int


class ServerFacts(Record, frozen=True, kw_only=True):
    """The facts of a trial's server.

    `members` are the servers of a cluster, or the server behind a proxy. `quirks` are names of
    protocol deviations that a client must handle (see servers/quirks.py). `round_trip_ns`, only of
    a remote server, is the median time to open a connection, taken before the trial.
    """

    kind: str
    version: str
    command: list[str]
    address: str
    cpus: str = ""
    quirks: list[str] = []
    round_trip_ns: int | None = None
    distance: Distance | None = None
    members: "list[ServerFacts]" = []


class Binary(Record, frozen=True, kw_only=True):
    """A program that took part in a trial, identified by the hash of its file.

    `role` is `server`, `worker`, or `script` for a file on the command line of an interpreter.
    """

    role: str
    path: str
    sha256: str


class ServerUse(Record, frozen=True, kw_only=True):
    """CPU time and memory of the server in the window, from /proc; absent for a remote server.

    `rss_before_bytes` is the memory of the empty server, before the trial's first operation.
    """

    cpu_ns: int
    rss_before_bytes: int
    rss_after_bytes: int
    rss_peak_bytes: int
    threads: int


class Sample(Record, frozen=True, kw_only=True):
    """One sample of the measured window, taken about once a second.

    `ops` is the number of operations that the workers had reported up to `ops_unix_ns`. The rate
    between two samples is Δ`ops` / Δ`ops_unix_ns`. `cpu_ns` and `stats` are running totals, as in
    `server_use` and `stats_before`. Missing values are None, or absent from `stats`.
    """

    unix_ns: int
    ops: int | None = None
    ops_unix_ns: int | None = None
    cpu_ns: int | None = None
    rss_bytes: int | None = None
    threads: int | None = None
    stats: dict[str, int] = {}


Weight = Literal["INVALID", "OVERLOAD", "NON_STATIONARY", "withheld", "noise", "note"]


class Finding(Record, frozen=True, kw_only=True):
    """The result of one rule of the verdict for a trial.

    `rule` is a stable name. A finding of weight INVALID, OVERLOAD or NON_STATIONARY is a reason for
    that verdict. `withheld`: some figures of the trial are not shown, the others count. `noise`
    is a disturbance of a trial that still counts, `note` is information.
    """

    rule: str
    weight: Weight
    text: str
    figure: float | None = None
    limit: float | None = None
    unit: str = ""


class Withheld(Record, frozen=True, kw_only=True):
    """A percentile of an open loop's response time that a disturbance may have moved too far.

    `kind` is the kind of operation, empty for all kinds together. `rule` names the finding with the
    reason. Without the disturbance, the percentile `ns` could be lower by up to `moved_ns`; more
    than `limit_ns` is too much.
    """

    kind: str
    percent: float
    rule: str
    ns: int
    moved_ns: int
    limit_ns: int


class LagBound(Record, frozen=True, kw_only=True):
    """An upper bound of the effect of the generator's own lag on a percentile that is shown."""

    kind: str
    percent: float
    ns: int
    moved_ns: int


class Plateau(Record, frozen=True, kw_only=True):
    """A part of the window with a constant level; `value` is the median of its slices."""

    from_ms: float
    to_ms: float
    value: float


class Stationarity(Record, frozen=True, kw_only=True):
    """Whether the window's rate (1/s, closed loop) or response time (ns, open loop) was stationary.

    `source` says where the slices come from: the worker's timeline or the server's counters. The
    counters show only how far an open loop's response time rises above its lowest value: then the
    plateaus are such rises. `why` is the reason if the window could not be judged. `warmup_end_ms`
    is when a window that began slower reached its last plateau. `trend_percent` is the change over
    the whole window along the Theil-Sen line.
    """

    of: Literal["rate", "response"]
    source: Literal["worker", "server", "none"]
    slice_ms: float = 0.0
    slices: int = 0
    plateaus: list[Plateau] = []
    warmup_end_ms: float | None = None
    trend_percent: float | None = None
    kpss: float | None = None
    why: str = ""


class CommandCount(Record, frozen=True, kw_only=True):
    """The number of commands that the server had executed `at_ns` after the window's start.

    The answer came then, `took_ns` after the question. `due` is the number of an open loop's
    operations that were due by then.
    """

    at_ns: int
    took_ns: int = 0
    commands: int
    due: int | None = None


class HostNoise(Record, frozen=True, kw_only=True):
    """Disturbances of the measured window, read from /proc. None: not readable.

    `steal_percent` and `foreign_cpu_percent` (CPU time of processes outside the trial) are
    percentages of the CPU time of all `cpus`; the latter is unknown if a process of the trial ended
    in the window. `counters` are increases of the kernel's counters, named as in host/counters.py.
    `waited_percent` is the time that the trial's threads were runnable without a CPU, relative to
    the time that they ran. A pause is the time by which a thread slept longer than requested, if
    that is more than 1 ms. `longest_halt_ns` is the longest part of a pause in which this process
    did not wait for a CPU, so that load cannot explain it. `stopped_ns`, `server_stopped_ns`: a
    signal or a debugger had stopped a worker or a server for this time. `kernel_log` has the
    matching lines of the kernel's log, by the pattern names of kernel_patterns.py.
    """

    cpus: int | None = None
    steal_percent: float | None = None
    foreign_cpu_percent: float | None = None
    load_1min: float = 0.0
    window_ns: int = 0
    counters: dict[str, int] = {}
    waited_percent: float | None = None
    clock_step_ns: int | None = None
    longest_pause_ns: int | None = None
    paused_ns: int = 0
    longest_halt_ns: int | None = None
    stopped_ns: int = 0
    server_stopped_ns: int = 0
    mhz: tuple[float, float] | None = None
    kernel_log: dict[str, list[str]] | None = None


class Observed(Record, frozen=True, kw_only=True):
    """Observations of the workers from outside, while they played a window.

    `wall_ns`, from the requested start to the last answer, is an upper bound of the window.
    `lasted_ns` is a lower bound, from the times of progress messages, and `cpu_ns` the CPU time of
    their processes in this part, by the scheduler's account; None: unknown. `duration_ns` is the
    requested length of a window that ends by time alone. `cpu_readings`, of a single worker: times
    since the requested start, and its CPU time until then.
    """

    wall_ns: int
    lasted_ns: int = 0
    duration_ns: int | None = None
    cpu_ns: int | None = None
    cpu_readings: list[tuple[int, int]] = []


class HostPart(Record, frozen=True, kw_only=True):
    """One host of a trial that was played over several.

    Its clock was `clock_offset_ns` ahead of the coordinator's, with an error of at most
    `clock_error_ns`, and moved by `clock_moved_ns` in the trial. Its workers got the request
    `late_ns` after the planned start; `measure` is their result. Both are None without workers.
    `slices_ns`: in rounds, the sum of the lengths that they reported for their slices.
    """

    name: str
    roles: list[str]
    address: str
    clock_offset_ns: int
    clock_error_ns: int
    clock_moved_ns: int
    round_trip_ns: int
    late_ns: int | None = None
    measure: Done | None = None
    slices_ns: int = 0
    observed: Observed | None = None
    noise: HostNoise | None = None


class Generators(Record, frozen=True, kw_only=True):
    """The load generators beside a measuring client; `measure` is the sum of their results.

    `tape` is their tape. `command` and `cpus` belong to one of them.
    """

    client: str
    worker: Ready | None = None
    command: list[str] = []
    cpus: str = ""
    tape: TapeFacts | None = None
    measure: Done | None = None
    observed: Observed | None = None


class _Format(Record, frozen=True, kw_only=True):
    format: int = OUTCOME_FORMAT


class Outcome(Record, frozen=True, kw_only=True):
    """A trial and all of its results.

    `prefill` and `warmup` have no times. `measure_started_at` is when the measured window began;
    empty if it did not. `awake`: cachemark kept idle CPUs out of sleep states. `rounds`: the slices
    of a trial that was played in turns with others; `measure` is then their sum. `hosts`: the hosts
    of a trial over several; `measure` is their sum, `noise` the worst of the hosts, and they
    started at most `start_skew_ns` apart. `generators`: they made the `load`; `measure` is then the
    measuring client's result alone. `web_cpu_ns`: the CPU time of the server of the run's own pages
    during the trial, or its sitting; None without such pages. `server_loads`: each of several
    servers, if all of them report their commands; in turns, lead-ins are included. `slab_classes`:
    size classes with evictions, if the servers report them.
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
    withheld: list[Withheld] = []
    lag_bounds: list[LagBound] = []
    stationarity: Stationarity | None = None
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
    observed: Observed | None = None
    stats_before: dict[str, str] = {}
    stats_after: dict[str, str] = {}
    server_use: ServerUse | None = None
    server_loads: list[ServerLoad] = []
    slab_classes: list[SlabClass] = []
    samples: list[Sample] = []
    noise: HostNoise | None = None
    rounds: Rounds | None = None
    host: str = ""
    log: str = ""
    hosts: list[HostPart] = []
    generators: Generators | None = None
    start_skew_ns: int | None = None
    web_cpu_ns: int | None = None

    @property
    def generated(self) -> Done | None:
        """The load generators' results in the window, beside the measuring client."""
        return self.generators.measure if self.generators else None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Outcome)
_format_decoder = msgspec.json.Decoder(_Format)


def to_line(outcome: Outcome) -> bytes:
    """Return the outcome as one JSON line, newline included."""
    return _encoder.encode(outcome) + b"\n"


def from_line(line: bytes) -> Outcome:
    """Read one outcome, also of an earlier format. Raises one of `errors.DECODE_ERRORS`."""
    number = _format_decoder.decode(line).format
    if number == OUTCOME_FORMAT:
        return _decoder.decode(line)
    if number == 1:
        return msgspec.convert(from_format_1(msgspec.json.decode(line)), Outcome)
    raise msgspec.ValidationError(
        f"an outcome of format {number}; this cachemark reads formats 1 to {OUTCOME_FORMAT}"
    )
