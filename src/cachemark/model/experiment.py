"""Experiments: what is compared with what, as frozen values.

An experiment is a grid, clients × servers × workloads × loads, repeated in `blocks` blocks.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.setting_types import MAX_ENTRIES, MAX_VALUE, Name, Names, Positive
from cachemark.model.setting_types import described as _is

# The treatment of trials on a noisy machine; `auto` is explained in verdict/noise.py.
NoisePolicy = Literal["auto", "refuse", "note"]
# A probability distribution. The engine defines them, and checks the text before the first trial.
_LAW = r"^[a-zA-Z0-9.:=,;+-]+$"
Distribution = Annotated[str, Meta(pattern=_LAW)]
_NUMBER = r"[0-9.]+(e[+-]?[0-9]+)?"


class TomlTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A TOML table. An unknown key is an error."""


class Keys(TomlTable, frozen=True, kw_only=True):
    """The keys, and how operations choose among them.

    Keys have a `length`, or follow a `pattern`, or are listed in `names`.
    """

    count: Annotated[Positive, _is("number of keys", 10_000)] = 10_000
    counters: Annotated[
        int, _is("number of keys, the last ones, that hold numbers for `incr` and `decr`", 10, ge=0)
    ] = 0
    distribution: Annotated[
        str,
        _is(
            "how operations choose keys",
            "zipf:0.99",
            "uniform",
            "hotspot:0.2:0.8",
            pattern=r"^((N:N(/N)?:)?(sequential|uniform|constant|ycsb-zipfian|zipf:N|hotspot:N:N|"
            r"latest(:N)?|gaussian(:N)?|recency:N:[^;]+)(;|$))+$".replace("N", _NUMBER),
        ),
    ] = "uniform"
    length: Annotated[
        str, _is("length of a key in bytes: a size", "20", "16..40", pattern=_LAW)
    ] = "20"
    pattern: Annotated[
        str | None, _is("a pattern with `{index}`, `{index:08}` or `{hex:10}`", "user:{index:08}")
    ] = None
    names: Annotated[list[str] | None, _is("the keys themselves", ["a", "b"])] = None


class Values(TomlTable, frozen=True, kw_only=True):
    """The values. A key always has the same value size."""

    size: Annotated[
        str, _is("bytes of a value: a size", "100", "1k..64k", "64=3,1k..4k=1", pattern=_LAW)
    ] = "100"
    compressibility: Annotated[
        float, _is("part of a value that compression can remove", 0.5, ge=0, le=1)
    ] = 0.0


class Workload(TomlTable, frozen=True, kw_only=True):
    """Which operations are played, on which keys and values.

    The operations come from one of `mix`, `sequence`, `preset` or `trace`. The measured window ends
    after `timing.measure_ms`, or after `ops` operations, or when the server is full to
    `fill_percent`; a trace is played once. `hit_ratio`, `prefill` and `run` may be lists: one
    workload for each value, named such as `NAME-0.9-hit_ratio`.
    """

    name: Annotated[Name, _is("its name in tables", "mixed")]
    preset: Annotated[
        str | None,
        _is(
            "a named workload (`cachemark-engine tape presets`), for all settings that have their "
            "defaults here",
            "etc",
        ),
    ] = None
    trace: Annotated[
        str | None, _is("a file with recorded operations, with its own keys and values", "day.csv")
    ] = None
    trace_format: Annotated[
        Literal["twitter", "kvcache", "memcached", "csv", "oracleGeneral"] | None,
        _is("its format; otherwise the first lines decide", "csv"),
    ] = None
    trace_columns: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z0-9_:,; \t-]+$")] | None,
        _is("the columns of a trace without a header", "time:ms,op,key,size"),
    ] = None
    trace_gets: Annotated[
        Literal["as-logged", "cache-aside"],
        _is("a get of a trace that misses does nothing, or stores the value"),
    ] = "as-logged"
    trace_left_out: Annotated[
        float, _is("part of a trace's operations that a tape may lack", 0.2, ge=0, le=1)
    ] = 0.01
    mix: Annotated[
        dict[str, Annotated[float, Meta(gt=0)]],
        _is("kinds of operations with their weights", {"get": 9, "set": 1}),
    ] = {}
    order: Annotated[
        Literal["mixed", "phases"],
        _is("order of a mix: drawn by weight, or all of the first kind, then all of the second"),
    ] = "mixed"
    sequence: Annotated[
        list[Annotated[str, Meta(pattern=r"^[a-z_]+(@[0-9]{1,9}(-[0-9]{1,9})?)?$")]],
        _is("steps on named or on drawn keys, played again and again", ["set@0", "mget@0-5"]),
    ] = []
    key_step: Annotated[
        int, _is("each repetition of the sequence advances its keys by this number", 6, ge=0)
    ] = 0
    keys: Annotated[Keys, _is("see `keys`")] = Keys()
    values: Annotated[Values, _is("see `values`")] = Values()
    run: Annotated[int, _is("keys in each mget or mset", 10, ge=1, le=65535)] = 10
    prefill: Annotated[
        float,
        _is(
            "part of the keys that the prefill stores; for a trace, its first keys "
            "(default 0: a cold cache)",
            0.5,
            ge=0,
            le=1,
        ),
    ] = 1.0
    hit_ratio: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        _is("part of the reads whose keys are stored; all other reads miss", 0.9),
    ] = None
    exptime_s: Annotated[
        Annotated[int, Meta(ge=0)] | Distribution,
        _is("expiry of items in seconds, or with units; 0: never", "10m..1h", 60),
    ] = 0
    records: Annotated[
        Positive | None,
        _is("operations on the tape of a closed loop (default: automatic), or of a trace", 100_000),
    ] = None
    fill_percent: Annotated[
        Annotated[float, Meta(gt=0, lt=100)] | None,
        _is("play until the server's `bytes` reach this percentage of its memory", 80.0),
    ] = None
    passes: Annotated[
        Positive | None, _is("number of plays of the whole tape; default of a trace: 1", 1)
    ] = None
    ops: Annotated[Positive | None, _is("play this number of operations", 100_000)] = None
    warmup_ms: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_VALUE)] | None,
        _is("warm-up, instead of the experiment's", 0),
    ] = None
    server_warmup_ops: Annotated[
        int, _is("operations that other workers play before: warm server, cold client", 600, ge=0)
    ] = 0
    loads: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None,
        _is("its loads, by name; default: all", ["one-caller"]),
    ] = None

    @property
    def kinds(self) -> set[str]:
        """Its operations, with `_noreply`."""
        return {*self.mix, *(step.partition("@")[0] for step in self.sequence)}


class Measure(TomlTable, frozen=True, kw_only=True):
    """A client that only measures, at a low rate, beside load generators that make the load.

    The cell's response times are its own. The load's other settings are for the generators.
    """

    rate: Annotated[float, _is("operations per second, Poisson", 1000, gt=0, le=MAX_VALUE)] = 1000
    connections: Annotated[Positive, _is("connections of the measuring client", 1)] = 1
    generator: Annotated[str, _is("the client that makes the load", "native")] = "native"


_THINK = r"^(exp:)?N(ns|us|ms|s)$".replace("N", _NUMBER)


class Load(TomlTable, frozen=True, kw_only=True):
    """When operations are sent, by how many callers, over how many connections.

    A setting may be a list, such as `threads = [1, 4, 16]`: one load for each value, named such as
    `NAME-4-threads`.
    """

    name: Annotated[Name, _is("its name in tables", "one-caller")]
    schedule: Annotated[
        str,
        _is(
            "when operations are due",
            "closed",
            "poisson",
            "bursts:5:0.1:100ms",
            "replay:2",
            pattern=r"^(closed|uniform|poisson|gpareto(:N)?|replay(:N)?|bursts:N:N:N(ns|us|ms|s))$".replace(
                "N", _NUMBER
            ),
        ),
    ] = "closed"
    think: Annotated[
        Annotated[str, Meta(pattern=_THINK)] | None,
        _is("closed loop: the time from a reply to the caller's next operation", "1ms", "exp:1ms"),
    ] = None
    rate: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        _is("open loop: operations per second, of all processes", 20_000),
    ] = None
    hosts: Annotated[Positive | None, _is("with --hosts: number of hosts; default: all", 2)] = None
    processes: Annotated[Positive, _is("worker processes", 2)] = 1
    threads: Annotated[Positive, _is("callers of each process", 16)] = 1
    connections: Annotated[
        Positive | None, _is("connections of each process; by default one for each thread", 16)
    ] = None
    depth: Annotated[Positive, _is("outstanding operations on each connection", 8)] = 1
    refill: Annotated[
        Literal["each", "all"],
        _is("with a depth: begin one operation when one has ended, or several when all have ended"),
    ] = "each"
    wire: Annotated[
        Literal["own", "text", "binary", "meta"],
        _is("the protocol; `own` is the library's default"),
    ] = "own"
    measure: Annotated[
        Measure | None, _is("a measuring client beside this load: see `measure`", {"rate": 1000})
    ] = None


class Timing(TomlTable, frozen=True, kw_only=True):
    """How long each part of a trial lasts."""

    warmup_ms: Annotated[int, _is("warm-up before the window", 500, ge=0, le=MAX_VALUE)] = 500
    measure_ms: Annotated[Positive, _is("the measured window", 1000)] = 1000
    timeout_ms: Annotated[Positive, _is("an operation that takes longer is an error", 1000)] = 1000
    ready_ms: Annotated[
        Positive, _is("a trial fails if a worker needs longer to be ready", 30_000)
    ] = 30_000
    silence_ms: Annotated[
        Positive, _is("a trial fails if a worker sends no message for longer", 15_000)
    ] = 15_000


class RoundsTiming(TomlTable, frozen=True, kw_only=True):
    """How cells are played in turns (`design = "rounds"`).

    In each sitting every client plays slices of `slice_ms` until it has played `timing.measure_ms`
    in all. `blocks` is the largest number of sittings.
    """

    slice_ms: Annotated[
        float,
        _is(
            "the shortest turn; closed loops 5 to 500, open loops 1000 or more", 30, ge=5, le=10_000
        ),
    ] = 30.0
    lead_in_percent: Annotated[
        float, _is("the first part of a slice, which is not counted", 15, ge=0, le=50)
    ] = 15.0
    until: Annotated[
        Literal["settled", "fixed"],
        _is("`settled`: stop at a look (6, 9, 12 sittings) with all answers; `fixed`: play all"),
    ] = "settled"
    max_s: Annotated[Positive | None, _is("begin no sitting after these seconds", 180)] = None


_CPUS = r"^(auto|none|[0-9,-]+)$"


class Placement(TomlTable, frozen=True, kw_only=True):
    """CPU sets; `auto`: half of the machine each; `none`: any CPU."""

    server: Annotated[str, _is("CPUs of the server", "auto", "0-1,3", pattern=_CPUS)] = "auto"
    worker: Annotated[str, _is("CPUs of the workers", "auto", "2", pattern=_CPUS)] = "auto"


class QuickGrid(TomlTable, frozen=True, kw_only=True):
    """The small grid of a suite, for `--quick`; it may have its own `timing` and `rounds`."""

    blocks: Annotated[Positive, _is("as above", 2)] = 2
    clients: Annotated[list[str] | None, _is("the clients that remain")] = None
    in_process: Annotated[list[str] | None, _is("the caches that remain")] = None
    servers: Annotated[list[str] | None, _is("other servers")] = None
    workloads: Annotated[list[str] | None, _is("names of workloads that remain")] = None
    loads: Annotated[list[str] | None, _is("names of loads that remain")] = None
    loads_of: Annotated[
        dict[str, list[str]], _is("a workload's name: fewer loads, for this workload only", {})
    ] = {}
    scale: Annotated[
        float, _is("multiplies the length of workloads that end by themselves", 0.1, gt=0, le=1)
    ] = 1.0
    timing: Annotated[Timing | None, _is("see `timing`")] = None
    rounds: Annotated[RoundsTiming | None, _is("see `rounds`")] = None


class Experiment(TomlTable, frozen=True, kw_only=True):
    """The grid of trials and the question that it answers.

    Each of `clients` is played against each of `servers`, with each workload and each of its loads,
    in each of `blocks`.
    """

    name: Annotated[Name, _is("its name; a part of the run's id", "my-question")]
    question: Annotated[str, _is("shown at the head of every report", "Which client is fastest?")]
    clients: Annotated[Names, _is("clients; `cachemark clients` lists them", ["native"])] = []
    in_process: Annotated[
        Names, _is("caches inside the worker's own process; they use no server", ["go/otter"])
    ] = []
    servers: Annotated[
        Names, _is("servers; `cachemark servers` lists them", ["memcached:memory=1g"])
    ] = []
    workloads: Annotated[
        list[Workload], _is("tables `[[workloads]]`", min_length=1, max_length=MAX_ENTRIES)
    ]
    loads: Annotated[list[Load], _is("tables `[[loads]]`", min_length=1, max_length=MAX_ENTRIES)]
    rank: Annotated[
        Literal["clients", "servers"],
        _is("rank the clients of each server, or the servers of each client"),
    ] = "clients"
    analysis: Annotated[str, _is("a text for the report: what the figures mean")] = ""
    seed: Annotated[int, _is("seed of the order of trials and of the tapes", 1, ge=0, le=2**53)] = 1
    blocks: Annotated[
        Positive, _is("repetitions of the whole grid; in rounds the most sittings", 12)
    ] = 5
    until_valid: Annotated[
        Positive | None, _is("trials: replay disturbed trials until each cell has N valid ones", 5)
    ] = None
    margin_percent: Annotated[
        float, _is("the smallest difference that matters to you", 5.0, ge=0)
    ] = 5.0
    noise: Annotated[
        NoisePolicy,
        _is(
            "a trial on a noisy machine: `refuse`: INVALID; `note`: the report says so; `auto`: "
            "refuses open loops, and noise that affects some clients more"
        ),
    ] = "auto"
    twice: Annotated[
        str, _is("A/A test: a client to play twice; any difference is chance", "python/pymemcache")
    ] = ""
    awake: Annotated[bool, _is("keep idle CPUs out of sleep states, with low-priority threads")] = (
        False
    )
    timing: Annotated[Timing, _is("see `timing`")] = Timing()
    design: Annotated[
        Literal["auto", "rounds", "trials"],
        _is(
            "`rounds`: cells take short turns; `trials`: one after the other; `auto`: rounds where "
            "possible"
        ),
    ] = "auto"
    rounds: Annotated[RoundsTiming, _is("see `rounds`")] = RoundsTiming()
    placement: Annotated[Placement, _is("see `placement`")] = Placement()
    search: Annotated[
        str,
        _is(
            "find the highest rate that meets this objective; loads are open loops without a rate",
            "p99<1ms",
            "p99.9<500us",
        ),
    ] = ""
    quick: Annotated[QuickGrid | None, _is("see `quick`")] = None
