"""The settings of an experiment that the command line can change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from cyclopts import Parameter

from cachemark.cli import completers
from cachemark.cli.changed_settings import replaced, without_none
from cachemark.cli.typed_experiment import own_question, suited_design, typed_workloads
from cachemark.cli.typed_search import searched
from cachemark.cli.typed_window import with_end, without_own_warmup
from cachemark.cli.work_options import WorkOptions, typed_work
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load, NoisePolicy, Workload
from cachemark.model.experiment_checks import check
from cachemark.model.work_settings import WorkSettings, load_settings


@dataclass(frozen=True)
class Overrides(WorkOptions):
    """Options that replace settings of the experiment."""

    client: Annotated[
        tuple[str, ...],
        completers.repeated(
            completers.clients, "use this client instead, or all that match 'go/*'"
        ),
    ] = ()
    server: Annotated[
        tuple[str, ...],
        completers.repeated(completers.servers, "use this server instead"),
    ] = ()
    add_server: Annotated[
        tuple[str, ...],
        completers.repeated(completers.servers, "use this server too"),
    ] = ()
    workload: Annotated[
        tuple[str, ...],
        completers.repeated(
            completers.in_suite("workloads"), "only this workload of the experiment"
        ),
    ] = ()
    load: Annotated[
        tuple[str, ...],
        completers.repeated(completers.in_suite("loads"), "only this load of the experiment"),
    ] = ()
    blocks: Annotated[
        int | None,
        Parameter(help="number of blocks (repetitions of the grid); rounds: number of sittings"),
    ] = None
    until_valid: Annotated[
        int | None,
        Parameter(help="trials: number of blocks, with replays of trials that noise disturbed"),
    ] = None
    seed: Annotated[int | None, Parameter(help="seed of the plan and the tapes")] = None
    warmup_ms: Annotated[
        int | None, Parameter(help="length of the warm-up of each trial, in ms")
    ] = None
    measure_ms: Annotated[
        int | None, Parameter(help="length of the measured window of each trial, in ms")
    ] = None
    ops: Annotated[
        int | None, Parameter(help="play this number of operations in the window of each trial")
    ] = None
    fill: Annotated[
        float | None,
        Parameter(help="end a workload that fills a server at this percentage of its memory"),
    ] = None
    scale: Annotated[
        float | None,
        Parameter(help="make workloads that end by themselves this many times as long"),
    ] = None
    timeout_ms: Annotated[int | None, Parameter(help="time-out of one operation, in ms")] = None
    threads: Annotated[
        tuple[int, ...],
        Parameter(negative="", help="number of callers; may be repeated, one load for each"),
    ] = ()
    connections: Annotated[int | None, Parameter(help="connections of each worker process")] = None
    depth: Annotated[int | None, Parameter(help="outstanding operations on each connection")] = None
    refill: Annotated[
        Literal["each", "all"] | None,
        Parameter(help="with a depth: begin the next when one has ended, or when all have"),
    ] = None
    processes: Annotated[int | None, Parameter(help="number of worker processes")] = None
    wire: Literal["own", "text", "binary", "meta"] | None = None
    server_cpus: Annotated[str | None, Parameter(help="such as 0-1; auto; none")] = None
    worker_cpus: Annotated[str | None, Parameter(help="such as 2,3; auto; none")] = None
    noise: Annotated[
        NoisePolicy | None,
        Parameter(help="noise makes trials invalid (refuse) or is noted (note); auto: by load"),
    ] = None
    twice: Annotated[
        str | None,
        Parameter(
            completer=completers.clients, help="A/A test: a client to play twice in each block"
        ),
    ] = None
    awake: Annotated[
        bool,
        Parameter(
            negative="", help="keep idle CPUs awake, with threads that give way to all others"
        ),
    ] = False
    design: Annotated[
        Literal["auto", "rounds", "trials"] | None,
        Parameter(help="play cells in turns (rounds), or one after the other (trials)"),
    ] = None
    slice_ms: Annotated[
        float | None, Parameter(help="rounds: length of a turn, in ms (5 to 500)")
    ] = None
    until: Annotated[
        Literal["settled", "fixed"] | None,
        Parameter(help="rounds: stop when all pairs are answered, or play all sittings"),
    ] = None
    max: Annotated[
        str | None,
        Parameter(help="rounds: begin no sitting that would end after this time, such as 10m"),
    ] = None
    search: Annotated[
        str | None,
        Parameter(help="find the highest rate that meets an objective, such as 'p99<1ms'"),
    ] = None
    rank: Annotated[
        Literal["clients", "servers"] | None,
        Parameter(help="rank the clients of each server, or the servers of each client"),
    ] = None
    margin: Annotated[
        float | None, Parameter(help="smallest difference that matters, in percent")
    ] = None
    quick: Annotated[bool, Parameter(negative="", help="the suite's small grid")] = False


def apply(
    experiment: Experiment, overrides: Overrides, in_process: Callable[[str], bool], engine: str
) -> Experiment:
    """The experiment with the command line's changes. Raises UsageError.

    `in_process` tells of a client whether it is a cache inside the worker's own process. `engine`
    reads the options of the work.
    """
    typed, preset = typed_work(overrides, engine)
    changed: dict[str, Any] = without_none(
        servers=_servers(experiment, overrides),
        **_blocks(experiment, overrides),
        seed=overrides.seed,
        noise=overrides.noise,
        awake=overrides.awake or None,
        design=overrides.design,
        margin_percent=overrides.margin,
        rank=overrides.rank,
    )
    changed["rounds"] = replaced(
        experiment.rounds,
        slice_ms=overrides.slice_ms,
        until=overrides.until,
        max_s=None if overrides.max is None else _seconds(overrides.max),
    )
    changed |= _clients(experiment, overrides, in_process)
    changed["timing"] = replaced(
        experiment.timing,
        warmup_ms=overrides.warmup_ms,
        measure_ms=overrides.measure_ms,
        timeout_ms=overrides.timeout_ms,
    )
    changed["placement"] = replaced(
        experiment.placement, server=overrides.server_cpus, worker=overrides.worker_cpus
    )
    grid = _grid_name(experiment, overrides)
    selected = _select_by_name("load", overrides.load, experiment.loads, grid)
    new_loads = {old.name: _loads(old, overrides, typed, experiment.loads) for old in selected}
    _check_distinct([(old, new) for old in selected for new in new_loads[old.name]])
    changed["loads"] = list({one.name: one for own in new_loads.values() for one in own}.values())
    workloads = _workloads(experiment, overrides, new_loads)
    ended = with_end(workloads, ops=overrides.ops, fill=overrides.fill, scale=overrides.scale)
    changed["workloads"] = typed_workloads(ended, typed, preset)
    if overrides.warmup_ms is not None:
        changed["workloads"] = without_own_warmup(changed["workloads"])
    result = replaced(experiment, **changed)
    result = own_question(result, typed, clients_typed=bool(overrides.client))
    result = _designed(result, overrides, typed, changed=bool(typed) or ended != workloads)
    check(result, "command line")
    return result


def _blocks(experiment: Experiment, overrides: Overrides) -> dict[str, int | None]:
    """The typed number of blocks; where trials are replayed, as many of them shall be valid."""
    blocks, until_valid = overrides.blocks, overrides.until_valid
    replaced(experiment, until_valid=until_valid)  # its error names the typed option
    return {
        "blocks": until_valid if blocks is None else blocks,
        "until_valid": blocks if until_valid is None and experiment.until_valid else until_valid,
    }


def _designed(
    experiment: Experiment, overrides: Overrides, typed: WorkSettings, *, changed: bool
) -> Experiment:
    """The experiment as a search, as trials or in rounds, as the options ask for."""
    window_typed = overrides.measure_ms is not None
    if overrides.search is not None:
        return searched(
            experiment,
            overrides.search,
            typed,
            blocks=overrides.blocks,
            window_typed=window_typed,
            twice=overrides.twice,
            design=overrides.design,
        )
    if overrides.design is None and changed:
        return suited_design(experiment, window_typed=window_typed)
    return experiment


def _servers(experiment: Experiment, overrides: Overrides) -> list[str] | None:
    """The typed servers, and those to add; None to keep the experiment's."""
    if not overrides.add_server:
        return list(overrides.server) or None
    base = overrides.server or experiment.servers
    return list(dict.fromkeys([*base, *overrides.add_server]))


def _clients(
    experiment: Experiment, overrides: Overrides, in_process: Callable[[str], bool]
) -> dict[str, Any]:
    """The typed clients, and the one that is played twice."""
    changed: dict[str, Any] = {}
    if overrides.twice is not None:
        changed["twice"] = overrides.twice
    elif overrides.client and experiment.twice not in overrides.client:
        changed["twice"] = ""
    if overrides.client:
        changed["in_process"] = [text for text in overrides.client if in_process(text)]
        changed["clients"] = [text for text in overrides.client if not in_process(text)]
    return changed


_TIME = re.compile(r"([0-9]{1,6})(s|m|h)?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}


def _seconds(text: str) -> int:
    """A time such as `90s` or `10m` in seconds. Raises UsageError."""
    match = _TIME.fullmatch(text)
    if match is None or not int(match[1]):
        raise UsageError(f"--max {text}: not a time", "write 90s, 10m or 1h")
    return int(match[1]) * _SECONDS[match[2]]


def _workloads(
    experiment: Experiment, overrides: Overrides, loads: dict[str, list[Load]]
) -> list[Workload]:
    """The selected workloads with the new names of their loads. Raises UsageError."""
    grid = _grid_name(experiment, overrides)
    selected = _select_by_name("workload", overrides.workload, experiment.workloads, grid)
    changed = [
        replaced(workload, loads=_renamed_loads(workload.loads, loads))
        for workload in selected
        if workload.loads is None or not loads.keys().isdisjoint(workload.loads)
    ]
    if not changed:
        under = sorted({name for workload in selected for name in workload.loads or ()})
        raise UsageError(
            f"--load {overrides.load[0]}: no workload uses it",
            f"{', '.join(workload.name for workload in selected)}: {', '.join(under)}",
        )
    return changed


def _grid_name(experiment: Experiment, overrides: Overrides) -> str:
    return f"{experiment.name} --quick" if overrides.quick else experiment.name


_Named = TypeVar("_Named", Load, Workload)


def _select_by_name(
    what: str, wanted: tuple[str, ...], existing: list[_Named], where: str
) -> list[_Named]:
    known = [one.name for one in existing]
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"--{what} {name}: no such {what} in {where}", f"it has: {', '.join(known)}"
            )
    return [one for one in existing if one.name in (wanted or known)]


def _check_distinct(pairs: list[tuple[Load, Load]]) -> None:
    """Refuse changes that would make two loads indistinguishable."""
    for (old, new), (other_old, other) in combinations(pairs, 2):
        same_name, same_settings = new.name == other.name, _unnamed(new) == _unnamed(other)
        if same_name != same_settings and _unnamed(old) != _unnamed(other_old):
            how = "differ only in their names" if same_settings else f"are both {new.name!r}"
            raise UsageError(
                f"with these options loads {old.name!r} and {other_old.name!r} {how}",
                "choose one of them with --load",
            )


def _loads(
    old: Load, overrides: Overrides, typed: WorkSettings, all_loads: list[Load]
) -> list[Load]:
    base = replaced(
        old,
        name=_renamed_wire(old, overrides.wire),
        connections=overrides.connections,
        depth=overrides.depth,
        refill=overrides.refill,
        processes=overrides.processes,
        wire=overrides.wire,
        **load_settings(old, typed),
    )
    if not overrides.threads:
        return [base]
    # Loads that differ in nothing but their threads become one; the others keep their names apart.
    alike = [load for load in all_loads if _without_threads(load) == _without_threads(old)]
    stem = re.sub(r"-?[0-9]+-threads$", "", _renamed_wire(alike[0], overrides.wire))
    prefix = f"{stem}-" if stem and len(alike) < len(all_loads) else ""
    # The count first: a name made of a wrong one would be refused in its stead.
    counted = [replaced(base, threads=threads) for threads in overrides.threads]
    return [replaced(load, name=f"{prefix}{load.threads}-threads") for load in counted]


def _renamed_wire(load: Load, wire: str | None) -> str:
    """The load's name, with a new wire protocol if the name contains the old one."""
    words = load.name.split("-")
    return "-".join(wire if wire and word == load.wire else word for word in words)


def _unnamed(load: Load) -> Load:
    return msgspec.structs.replace(load, name="unnamed")


def _without_threads(load: Load) -> Load:
    return msgspec.structs.replace(_unnamed(load), threads=1)


def _renamed_loads(loads: list[str] | None, new_loads: dict[str, list[Load]]) -> list[str] | None:
    if loads is None:
        return None
    replaced = (old for old in loads if old in new_loads)
    return list(dict.fromkeys(new.name for old in replaced for new in new_loads[old]))
