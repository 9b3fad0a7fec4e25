"""Experiments: frozen values that say what is compared; TOML in.

An experiment is a grid, clients × servers × workloads × loads, played in `blocks` repetitions.
An error names the file, the line and the remedy.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.errors import UNREADABLE, UsageError

# No count or time of an experiment comes near; beyond 64 bits JSON would carry it as a fraction.
_MOST = 2**40
Positive = Annotated[int, Meta(ge=1, le=_MOST)]
# What noise of the machine does to a trial: `auto`: see verdict/noise.py.
NoisePolicy = Literal["auto", "refuse", "note"]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# A law of the engine's, such as `100`, `1k..64k`, `gpareto:15:214.476:0.348` or `64=3,1k=1`; the
# engine knows which there are, and is asked before the first trial.
Law = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9.:=,-]+$")]


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value read from a TOML table; an unknown key is an error."""


class Keys(Frozen, frozen=True, kw_only=True):
    """The key table and how keys are drawn from it.

    Keys have a `length`, or follow a `pattern` such as `user:{index:08}`, or are given as `names`.
    The last `counters` of them are counters, for `incr` and `decr` alone.
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
    length: Law = "20"
    pattern: str | None = None
    names: list[str] | None = None


class Values(Frozen, frozen=True, kw_only=True):
    """The values: bytes each, a function of the key.

    `100`, `100..1000` (uniform), `gpareto:LOCATION:SCALE:SHAPE`, `pareto:LEAST:ALPHA`,
    `gev:LOCATION:SCALE:SHAPE`, `lognormal:MEDIAN:SIGMA`, or several by weight: `64=3,1k..4k=1`.
    """

    size: Law = "100"
    compressibility: Annotated[float, Meta(ge=0, le=1)] = 0.0


class Workload(Frozen, frozen=True, kw_only=True):
    """What is done: operations over keys and values, either a mix or a sequence.

    A `mix` is drawn from by weight, or played in `phases`: all of the first kind, then all of the
    second. A `sequence` such as `["set@0", "get@0", "mget@0-5", "get"]` is played again and again;
    each time is a group that stays together, with its keys moved on by `key_step`.

    The measured window ends after `timing.measure_ms`; with `ops` after that many operations
    instead; with `fill_percent` when the server's `bytes` reach that part of its limit. With
    `warmup_ms` it has a warm-up of its own. `loads` names the loads that it is played with, if not
    all.

    `preset` is a workload by name (`cachemark-engine tape presets`): what is left at its default
    here is the preset's. With `hit_ratio` that part of the reads is of keys that are stored first,
    the rest of keys that never are. `exptime_s` is a number, or a law as for sizes, in seconds or
    with a unit: `10m..1h`.

    `trace` is a recording's file, of which `records` operations are played; it has its own keys,
    values and operations. Its `prefill` is the part of the keys, in the order they came;
    0 begins with a cold cache.
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
    exptime_s: Annotated[int, Meta(ge=0)] | Law = 0
    records: Annotated[int, Meta(ge=1, description="operations on the tape of a closed loop")] = (
        100_000
    )
    fill_percent: Annotated[float, Meta(gt=0, lt=100)] | None = None
    ops: Positive | None = None
    warmup_ms: Annotated[int, Meta(ge=0, le=_MOST)] | None = None
    loads: Annotated[list[str], Meta(min_length=1)] | None = None


def longest_run(workload: Workload) -> int:
    """The most keys that one mget or mset of a workload names."""
    spans = [step.partition("@")[2].partition("-") for step in workload.sequence]
    named = [int(last) - int(first) + 1 for first, dash, last in spans if dash]
    return max([workload.run, *named])


class Load(Frozen, frozen=True, kw_only=True):
    """How hard it is done.

    A `schedule` is closed (the next operation follows the reply, after the caller has thought for
    `think`: `1ms`, or `exp:1ms` for exponential times) or open: uniform, poisson, `gpareto:SHAPE`,
    or `bursts:FACTOR:SHARE:LENGTH`, bursts of that many times the rate in that part of the time; a
    trace also `replay` or `replay:SPEED`.
    `rate` is in operations per second of all processes together; `connections` are per process and
    by default as many as `threads`; fewer are shared by the threads. `depth` is outstanding
    operations per connection. `wire` is the protocol; `own` is the one that the library prefers.
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


class Timing(Frozen, frozen=True, kw_only=True):
    """How long each part of a trial lasts.

    An operation that takes longer than `timeout_ms` is an error; a worker that is not ready after
    `ready_ms`, or says nothing for `silence_ms` during a run, is given up.
    """

    warmup_ms: Annotated[int, Meta(ge=0, le=_MOST)] = 500
    measure_ms: Positive = 1000
    timeout_ms: Positive = 1000
    ready_ms: Positive = 30_000
    silence_ms: Positive = 15_000


class Placement(Frozen, frozen=True, kw_only=True):
    """CPU sets such as `0-1,3`; `auto`: half the machine each; `none`: the kernel decides."""

    server: Annotated[str, Meta(pattern=r"^(auto|none|[0-9,-]+)$")] = "auto"
    worker: Annotated[str, Meta(pattern=r"^(auto|none|[0-9,-]+)$")] = "auto"


class Quick(Frozen, frozen=True, kw_only=True):
    """The small grid of a suite: what of it is kept, by name, and by how much it is shortened.

    `scale` shortens workloads that end by a number of operations, or by a fill.
    """

    blocks: Positive = 2
    clients: list[str] | None = None
    in_process: list[str] | None = None
    servers: list[str] | None = None
    workloads: list[str] | None = None
    loads: list[str] | None = None
    scale: Annotated[float, Meta(gt=0, le=1)] = 1.0
    timing: Timing | None = None


class Experiment(Frozen, frozen=True, kw_only=True):
    """The grid of trials and the question that it answers.

    `clients` are played against each of the `servers`; `in_process` are caches inside the worker's
    own process, which have no server. `noise` says whether a trial counts on a machine that was not
    quiet: `refuse` shows no figure of such a trial, `note` only tells, `auto` refuses in open loops
    and where noise falls on some clients more than on others. `twice` names a client that is played
    a second time in each block, under a label: what it then differs from itself is chance. `awake`
    keeps idle CPUs from sleep, with threads that give way to everything.
    """

    name: Name
    question: str
    clients: list[str] = []
    in_process: list[str] = []
    servers: list[str] = []
    workloads: Annotated[list[Workload], Meta(min_length=1)]
    loads: Annotated[list[Load], Meta(min_length=1)]
    analysis: str = ""
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 1
    blocks: Positive = 5
    margin_percent: Annotated[float, Meta(ge=0)] = 2.0
    noise: NoisePolicy = "auto"
    twice: str = ""
    awake: bool = False
    timing: Timing = Timing()
    placement: Placement = Placement()
    quick: Quick | None = None


def parse(text: str, where: str) -> Experiment:
    """Read an experiment from TOML text; `where` names the file in messages. Raises UsageError."""
    try:
        document = tomllib.loads(text)
    except UNREADABLE as error:
        raise UsageError(f"{where}: not TOML: {error}") from error
    try:
        experiment = msgspec.convert(document, Experiment)
    except msgspec.ValidationError as error:
        raise _located(error, text, where) from error
    check(experiment, where)
    return experiment


def load(path: Path) -> Experiment:
    """Read an experiment file. Raises UsageError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path))


def check(experiment: Experiment, where: str) -> None:
    """Refuse what types cannot: names used twice, a rate without a schedule. Raises UsageError."""
    for what, names in (
        ("workload", [w.name for w in experiment.workloads]),
        ("load", [a.name for a in experiment.loads]),
        ("client", [*experiment.clients, *experiment.in_process]),
        ("server", experiment.servers),
    ):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise UsageError(f"{where}: {what} {twice[0]!r} stands there twice", "give it once")
    _check_parties(experiment, where)
    for load_ in experiment.loads:
        _check_load(load_, where)
    for workload in experiment.workloads:
        _check_order(workload, where)
    known = {load_.name for load_ in experiment.loads}
    for workload in experiment.workloads:
        unknown = sorted(set(workload.loads or []) - known)
        if unknown:
            raise UsageError(
                f"{where}: workload {workload.name!r}: no load {unknown[0]!r}",
                f"known loads: {', '.join(sorted(known))}",
            )


def _check_parties(experiment: Experiment, where: str) -> None:
    if experiment.twice and experiment.twice not in experiment.clients:
        raise UsageError(
            f"{where}: twice = {experiment.twice!r} is none of the clients",
            f"one of: {', '.join(experiment.clients)}",
        )
    if not experiment.clients and not experiment.in_process:
        raise UsageError(f"{where}: no client", 'add clients = ["native"]')
    if experiment.clients and not experiment.servers:
        raise UsageError(f"{where}: no server", 'add servers = ["embedded"]')


def _check_order(workload: Workload, where: str) -> None:
    place = f"{where}: workload {workload.name!r}"
    if workload.mix and workload.sequence:
        raise UsageError(f"{place}: it needs a mix or a sequence, one of the two")
    if workload.trace and (workload.mix or workload.sequence or workload.preset):
        raise UsageError(f"{place}: a trace has its own operations", "leave mix and preset out")
    if not (workload.mix or workload.sequence or workload.preset or workload.trace):
        raise UsageError(f"{place}: it needs a mix or a sequence, one of the two")
    if workload.hit_ratio is not None and workload.prefill != 1.0:
        raise UsageError(f"{place}: hit_ratio says what is stored first, too", "leave prefill out")
    if workload.sequence and workload.order != "mixed":
        raise UsageError(f"{place}: a sequence has its own order", "leave order out")
    if workload.key_step and not workload.sequence:
        raise UsageError(f"{place}: key_step belongs to a sequence", "leave it out")


def _check_load(load_: Load, where: str) -> None:
    place = f"{where}: load {load_.name!r}"
    if load_.schedule == "closed" and load_.rate is not None:
        raise UsageError(
            f"{place}: a closed loop has no rate",
            'set schedule = "uniform" or "poisson", or leave the rate out',
        )
    if load_.schedule != "closed" and load_.think is not None:
        raise UsageError(f"{place}: in an open loop nobody waits to send", "leave think out")
    replay = load_.schedule.startswith("replay")
    if replay and load_.rate is not None:
        raise UsageError(f"{place}: a replay has the trace's own rate", "leave rate out")
    if load_.schedule != "closed" and not replay and load_.rate is None:
        raise UsageError(
            f"{place}: schedule {load_.schedule!r} needs a rate", "add rate = operations per second"
        )
    connections = load_.connections or load_.threads
    if connections % load_.threads and load_.threads % connections:
        raise UsageError(
            f"{place}: {load_.connections} connections cannot be shared by {load_.threads} threads",
            "make connections a multiple of threads, or a divisor",
        )


# msgspec names a place as `$.workloads[0].keys.count`, or `$.workloads[...]` inside a mapping.
_PLACE = re.compile(r" - at `\$?(?:key in )?(?P<path>[^`]*)`$")
_HEADER = re.compile(r"(?:(?P<array>\[\[)|\[)\s*(?P<name>[\w-]+)\s*[.\]]")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")


def _located(error: msgspec.ValidationError, text: str, where: str) -> UsageError:
    message = str(error)
    found = _PLACE.search(message)
    path = found["path"].lstrip(".") if found else ""
    what = message[: found.start()] if found else message
    unknown = _UNKNOWN.search(message)
    if unknown:
        path = f"{path}.{unknown['field']}".lstrip(".")
        what = "no such setting"
    line = _line_of(path, text)
    place = f"{where}:{line}" if line else where
    return UsageError(f"{place}: {path or 'experiment'}: {what}", _remedy(path, bool(unknown)))


def _remedy(path: str, unknown: bool) -> str:
    if not unknown:
        return ""
    types: dict[str, type[Frozen]] = {
        "workloads": Workload,
        "loads": Load,
        "keys": Keys,
        "values": Values,
        "timing": Timing,
        "placement": Placement,
        "quick": Quick,
    }
    parts = [re.sub(r"\[.*", "", part) for part in path.split(".")]
    owner = types.get(parts[-2], Experiment) if len(parts) > 1 else Experiment
    known = ", ".join(field.name for field in msgspec.structs.fields(owner))
    return f"known settings there: {known}"


def _line_of(path: str, text: str) -> int | None:
    """The line of a setting: walk the file, follow table headers, and find the key."""
    parts = [part for part in re.split(r"[.\[\]]+", path) if part and part != "..."]
    names = [part for part in parts if not part.isdigit()]
    if not names:
        return None
    index = next((int(part) for part in parts if part.isdigit()), 0)
    key = re.compile(rf"(^|[\[{{,.\s]){re.escape(names[-1])}\s*(=|\])")
    section, seen = "", -1
    best: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        header = _HEADER.match(stripped)
        if header:
            section = header["name"]
            if section == names[0] and header["array"]:
                seen += 1
        if section == names[0]:
            inside = seen in (-1, index)
            best = best or (number if inside else None)
        else:
            # Before all tables: a setting of its own, or a table written on one line.
            inside = not section and (len(names) == 1 or stripped.startswith(names[0]))
        if inside and key.search(stripped):
            return number
    return best
