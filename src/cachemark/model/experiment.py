"""Experiments: what is compared with what, as frozen values.

An experiment is a grid, clients × servers × workloads × loads, repeated in `blocks` blocks.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# Above any real count or time, and below what JSON readers turn into a floating-point number.
_MAX_VALUE = 2**40
Positive = Annotated[int, Meta(ge=1, le=_MAX_VALUE)]
# What happens to a trial if the machine was noisy; `auto` is explained in verdict/noise.py.
NoisePolicy = Literal["auto", "refuse", "note"]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# The entries of one axis of a grid.
MAX_ENTRIES = 1000
Names = Annotated[list[str], Meta(max_length=MAX_ENTRIES)]
# A probability distribution, such as `100`, `1k..64k`, `gpareto:15:214.476:0.348` or `64=3,1k=1`.
# The engine defines them, and checks the text before the first trial.
Distribution = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9.:=,-]+$")]


class TomlTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A TOML table. An unknown key is an error."""


class Keys(TomlTable, frozen=True, kw_only=True):
    """The keys, and how operations choose among them.

    Keys have a `length` in bytes, or follow a `pattern` such as `user:{index:08}`, or are listed in
    `names`. The last `counters` keys hold numbers; only `incr` and `decr` use them.
    """

    count: Positive = 10_000
    counters: Annotated[int, Meta(ge=0)] = 0
    distribution: Annotated[
        str,
        Meta(
            pattern=r"^(sequential|uniform|constant|zipf:[0-9.]+|ycsb-zipfian|"
            r"hotspot:[0-9.]+:[0-9.]+|latest(:[0-9.]+)?|gaussian(:[0-9.]+)?)$"
        ),
    ] = "uniform"
    length: Distribution = "20"
    pattern: str | None = None
    names: list[str] | None = None


class Values(TomlTable, frozen=True, kw_only=True):
    """The size of the values in bytes. A key always has the same value size.

    `size` is one of `100`, `100..1000` (uniform), `gpareto:LOCATION:SCALE:SHAPE`,
    `pareto:LEAST:ALPHA`, `gev:LOCATION:SCALE:SHAPE`, `lognormal:MEDIAN:SIGMA`, or several by
    weight: `64=3,1k..4k=1`.
    """

    size: Distribution = "100"
    compressibility: Annotated[float, Meta(ge=0, le=1)] = 0.0


class Workload(TomlTable, frozen=True, kw_only=True):
    """Which operations are played, on which keys and values.

    The operations come from one of four settings:

    - `mix`: kinds of operations with weights. With `order = "mixed"` each operation is drawn by
      weight; with `"phases"` all operations of the first kind come first, then the second.
    - `sequence`: steps such as `["set@0", "get@0", "mget@0-5", "get"]`, repeated. Each repetition
      stays together; its keys are `key_step` further than those of the one before.
    - `preset`: a named workload (`cachemark-engine tape presets`). Settings that have their default
      value here are taken from the preset.
    - `trace`: a file with recorded operations, of which `records` are played, with the trace's own
      keys and values. `prefill` is then a fraction of its keys, in their order of appearance.

    The measured window ends after `timing.measure_ms`. With `ops` it ends after that many
    operations; with `fill_percent` when the server's `bytes` reach that percentage of its limit.
    `warmup_ms` replaces the experiment's warm-up. `loads` names the loads that this workload is
    played with; without it, all.

    `prefill` is the fraction of keys stored before the window; 0 starts with an empty cache. With
    `hit_ratio`, that fraction of the reads is of stored keys, and the rest is of keys that are
    never stored. `exptime_s` is a number of seconds, or a distribution with or without units, such
    as `10m..1h`.
    """

    name: Name
    preset: str | None = None
    trace: str | None = None
    trace_format: Literal["twitter", "kvcache", "memcached", "csv"] | None = None
    mix: dict[str, Annotated[float, Meta(gt=0)]] = {}
    order: Literal["mixed", "phases"] = "mixed"
    sequence: list[Annotated[str, Meta(pattern=r"^[a-z_]+(@[0-9]+(-[0-9]+)?)?$")]] = []
    key_step: Annotated[int, Meta(ge=0)] = 0
    keys: Keys = Keys()
    values: Values = Values()
    run: Annotated[int, Meta(ge=1, le=65535, description="keys in each mget or mset")] = 10
    prefill: Annotated[float, Meta(ge=0, le=1, description="fraction of keys stored first")] = 1.0
    hit_ratio: Annotated[float, Meta(ge=0, le=1)] | None = None
    exptime_s: Annotated[int, Meta(ge=0)] | Distribution = 0
    records: Annotated[int, Meta(ge=1, description="operations on the tape of a closed loop")] = (
        100_000
    )
    fill_percent: Annotated[float, Meta(gt=0, lt=100)] | None = None
    ops: Positive | None = None
    warmup_ms: Annotated[int, Meta(ge=0, le=_MAX_VALUE)] | None = None
    loads: Annotated[list[str], Meta(min_length=1)] | None = None


def max_keys_per_command(workload: Workload) -> int:
    """The largest number of keys in one mget or mset of a workload."""
    spans = [step.partition("@")[2].partition("-") for step in workload.sequence]
    named = [int(last) - int(first) + 1 for first, dash, last in spans if dash]
    return max([workload.run, *named])


class Load(TomlTable, frozen=True, kw_only=True):
    """When operations are sent, by how many callers, over how many connections.

    `schedule` is `closed` or one of the open-loop schedules:

    - `closed`: a caller sends its next operation after the reply, and after its think time `think`
      (`1ms`, or `exp:1ms` for exponentially distributed times).
    - `uniform`, `poisson`, `gpareto:SHAPE`: open loop at `rate`, with these gaps.
    - `bursts:FACTOR:SHARE:LENGTH`: open loop; FACTOR × the rate during SHARE of the time.
    - `replay`, `replay:SPEED`: open loop, at the times in a trace.

    `rate` is operations per second of all processes together. `connections` is per process, by
    default one per thread; if there are fewer, the threads share them. `depth` is the number of
    outstanding operations per connection. `wire` is the protocol; `own` is the library's default.
    """

    name: Name
    schedule: Annotated[
        str,
        Meta(
            pattern=r"^(closed|uniform|poisson|gpareto(:[0-9.]+)?|replay(:[0-9.]+)?|"
            r"bursts:[0-9.]+:[0-9.]+:[0-9.]+(ns|us|ms|s))$"
        ),
    ] = "closed"
    think: Annotated[str, Meta(pattern=r"^(exp:)?[0-9.]+(ns|us|ms|s)$")] | None = None
    rate: Annotated[float, Meta(gt=0)] | None = None
    processes: Positive = 1
    threads: Positive = 1
    connections: Positive | None = None
    depth: Positive = 1
    wire: Literal["own", "text", "binary", "meta"] = "own"


class Timing(TomlTable, frozen=True, kw_only=True):
    """How long each part of a trial lasts.

    An operation that takes longer than `timeout_ms` is an error. A trial fails if a worker is not
    ready within `ready_ms`, or sends no message for `silence_ms` during a run.
    """

    warmup_ms: Annotated[int, Meta(ge=0, le=_MAX_VALUE)] = 500
    measure_ms: Positive = 1000
    timeout_ms: Positive = 1000
    ready_ms: Positive = 30_000
    silence_ms: Positive = 15_000


class RoundsTiming(TomlTable, frozen=True, kw_only=True):
    """How cells are played in turns (`design = "rounds"`).

    In each sitting every client plays slices of `slice_ms` (closed loops 5 to 500, open loops 1000
    or more) until it has played `timing.measure_ms`
    in all; the first `lead_in_percent` of a slice is not counted. `blocks` is the largest number of
    sittings. `until = "settled"` stops at a look (after 6, 9 or 12 sittings) when every question is
    answered; `fixed` plays them all. No sitting begins after `max_s` seconds.
    """

    slice_ms: Annotated[float, Meta(ge=5, le=10_000)] = 30.0
    lead_in_percent: Annotated[float, Meta(ge=0, le=50)] = 15.0
    until: Literal["settled", "fixed"] = "settled"
    max_s: Positive | None = None


class Placement(TomlTable, frozen=True, kw_only=True):
    """CPU sets such as `0-1,3`; `auto`: half of the machine each; `none`: any CPU."""

    server: Annotated[str, Meta(pattern=r"^(auto|none|[0-9,-]+)$")] = "auto"
    worker: Annotated[str, Meta(pattern=r"^(auto|none|[0-9,-]+)$")] = "auto"


class QuickGrid(TomlTable, frozen=True, kw_only=True):
    """The small grid of a suite, for `--quick`: which names remain, and how much is shortened.

    `scale` multiplies the length of workloads that end after `ops` or at `fill_percent`.
    """

    blocks: Positive = 2
    clients: list[str] | None = None
    in_process: list[str] | None = None
    servers: list[str] | None = None
    workloads: list[str] | None = None
    loads: list[str] | None = None
    scale: Annotated[float, Meta(gt=0, le=1)] = 1.0
    timing: Timing | None = None
    rounds: RoundsTiming | None = None


class Experiment(TomlTable, frozen=True, kw_only=True):
    """The grid of trials and the question that it answers.

    Each of `clients` is played against each of `servers`. `in_process` are caches inside the
    worker's own process; they have no server.

    `design` is `rounds` (all cells that are compared are ready at once, and play short slices in
    turn), `trials` (one cell after the other), or `auto`: rounds where the loads are closed loops,
    at least two cells can be compared, and no workload is a fill, a trace or a number of
    operations.

    `noise` says what happens to a trial if the machine was not quiet: `refuse` makes it INVALID,
    `note` adds a note, `auto` refuses it in open loops and if the noise affects some clients more
    than others. `twice` names a client that is played a second time in each block under another
    label (an A/A test): any difference between the two is chance. `awake` keeps idle CPUs out of
    sleep states, with low-priority threads.
    """

    name: Name
    question: str
    clients: Names = []
    in_process: Names = []
    servers: Names = []
    workloads: Annotated[list[Workload], Meta(min_length=1, max_length=MAX_ENTRIES)]
    loads: Annotated[list[Load], Meta(min_length=1, max_length=MAX_ENTRIES)]
    analysis: str = ""
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1
    blocks: Positive = 5
    margin_percent: Annotated[float, Meta(ge=0)] = 5.0
    noise: NoisePolicy = "auto"
    twice: str = ""
    awake: bool = False
    timing: Timing = Timing()
    design: Literal["auto", "rounds", "trials"] = "auto"
    rounds: RoundsTiming = RoundsTiming()
    placement: Placement = Placement()
    quick: QuickGrid | None = None


def plays_to_an_end(workload: Workload) -> bool:
    """Whether a workload ends by itself: a fill, a trace, or a number of operations."""
    return bool(workload.fill_percent is not None or workload.ops is not None or workload.trace)
