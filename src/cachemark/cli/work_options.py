"""Options that say what is played. Their grammar is the engine's, see model/work_settings.py."""

from dataclasses import dataclass, fields
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli import completers
from cachemark.model.presets import find_preset, load_presets
from cachemark.model.work_settings import WorkSettings, read_options


@dataclass(frozen=True)
class WorkOptions:
    """The work, as `cachemark-engine drive` takes it. docs/experiment.md has the grammar."""

    mix: Annotated[str | None, Parameter(help="operations and their weights: get=95,set=5")] = None
    size: Annotated[
        str | None, Parameter(help="size of a value: 100, 1k..64k, lognormal:300:1; of parts: a;b")
    ] = None
    keys: Annotated[str | None, Parameter(help="number of keys: 10k, 1M")] = None
    distribution: Annotated[
        str | None, Parameter(help="how keys are drawn: zipf:1; by parts: 0.2:0.8:zipf:1;0.8:0.2:…")
    ] = None
    zipf: Annotated[str | None, Parameter(help="the same as --distribution zipf:EXPONENT")] = None
    key_length: Annotated[str | None, Parameter(help="length of a key: 20, 16..40")] = None
    key_pattern: Annotated[str | None, Parameter(help="pattern of a key: user:{index:08}")] = None
    key_names: Annotated[str | None, Parameter(help="the keys themselves: a,b,c")] = None
    counters: Annotated[
        str | None, Parameter(help="number of keys that are counters, for incr and decr")
    ] = None
    compressibility: Annotated[
        str | None, Parameter(help="part of a value that compression can remove, 0 to 1")
    ] = None
    order: Annotated[
        str | None, Parameter(help="order of the operations of a mix: mixed, or phases")
    ] = None
    sequence: Annotated[
        str | None, Parameter(help="operations to repeat, instead of a mix: 'set@0 get@0 mget@0-5'")
    ] = None
    key_step: Annotated[
        str | None,
        Parameter(help="each repetition of the sequence advances its keys by this number"),
    ] = None
    run: Annotated[str | None, Parameter(help="number of keys in each mget or mset")] = None
    prefill: Annotated[
        str | None,
        Parameter(help="part of the keys to store before the warm-up, 0 to 1; for a trace: 0"),
    ] = None
    hit_ratio: Annotated[
        str | None, Parameter(help="part of the reads that ask for stored keys")
    ] = None
    exptime: Annotated[str | None, Parameter(help="expiry of items: 0 (never), 10m, 1h..1d")] = None
    records: Annotated[
        str | None, Parameter(help="number of operations on the tape of a closed loop or a trace")
    ] = None
    preset: Annotated[
        str | None,
        Parameter(
            completer=completers.presets,
            help="a named workload: etc, ycsb-a, twitter-52 and others",
        ),
    ] = None
    trace: Annotated[str | None, Parameter(help="a file with recorded operations")] = None
    trace_format: Annotated[
        str | None, Parameter(help="twitter, kvcache, memcached, csv or oracleGeneral")
    ] = None
    columns: Annotated[
        str | None, Parameter(help="columns of a trace without a header: time:ms,op,key,size")
    ] = None
    gets: Annotated[
        str | None,
        Parameter(help="gets of a trace that miss: as-logged, or cache-aside (they are stored)"),
    ] = None
    left_out: Annotated[
        str | None, Parameter(help="part of a trace that may be left out, 0 to 1; default: 0.01")
    ] = None
    schedule: Annotated[
        str | None, Parameter(help="closed, uniform, poisson, gpareto:…, bursts:…, replay:SPEED")
    ] = None
    think: Annotated[
        str | None, Parameter(help="closed loop: think time of a caller, such as 1ms or exp:1ms")
    ] = None
    rate: Annotated[str | None, Parameter(help="open loop: operations per second, such as 20k")] = (
        None
    )


def typed_work(options: WorkOptions, engine: str) -> tuple[WorkSettings, WorkSettings | None]:
    """The typed settings, and the typed preset's. Raises UsageError."""
    words: list[str] = []
    for field in fields(WorkOptions):
        text = getattr(options, field.name)
        if text is not None:
            words.append(f"--{field.name.replace('_', '-')}={text}")
    typed = read_options(engine, words)
    if "preset" not in typed.workload:
        return typed, None
    return typed, find_preset(typed.workload["preset"], load_presets(engine), "--preset")
