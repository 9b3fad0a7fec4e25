"""The settings of an experiment that the command line can change."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, TypeVar

import msgspec

from cachemark.cli.set_option import typed_settings, with_others
from cachemark.cli.typed_experiment import (
    check_window,
    own_question,
    replaced,
    searched,
    suited_design,
    typed_workloads,
    with_end,
    without_none,
    without_own,
)
from cachemark.cli.work_options import WorkOptions, typed_work
from cachemark.endpoints.clients import matching_clients, parse_client, registry
from cachemark.host import process
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load, NoisePolicy, RoundsTiming, Workload
from cachemark.model.experiment_checks import check
from cachemark.model.presets import expand
from cachemark.model.work_settings import WorkSettings, load_settings


@dataclass(frozen=True)
class Overrides(WorkOptions):
    """Replacements of settings of the experiment, from options or from `--set`.

    `others` are settings that change nothing but themselves, by their paths.
    """

    client: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    add_server: tuple[str, ...] = ()
    round_trip: str | None = None
    workload: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    blocks: int | None = None
    until_valid: int | None = None
    seed: int | None = None
    warmup_ms: int | None = None
    measure_ms: int | None = None
    ops: int | None = None
    fill: float | None = None
    scale: float | None = None
    timeout_ms: int | None = None
    threads: tuple[int, ...] = ()
    connections: int | None = None
    depth: int | None = None
    refill: Literal["each", "all"] | None = None
    processes: int | None = None
    wire: Literal["own", "text", "binary", "meta"] | None = None
    server_cpus: str | None = None
    worker_cpus: str | None = None
    noise: NoisePolicy | None = None
    twice: str | None = None
    awake: bool = False
    design: Literal["auto", "rounds", "trials"] | None = None
    slice_ms: float | None = None
    until: Literal["settled", "fixed"] | None = None
    max: str | None = None
    search: str | None = None
    rank: Literal["clients", "servers"] | None = None
    margin: float | None = None
    quick: bool = False
    others: tuple[tuple[str, Any], ...] = ()


def with_settings(typed: Mapping[str, Any], settings: Iterable[str]) -> Overrides:
    """Typed options together with the settings of `--set`. Raises UsageError if both have one."""
    by_path = typed_settings(settings)
    if twice := by_path.overrides.keys() & typed.keys():
        option = sorted(twice)[0].replace("_", "-")
        raise UsageError(f"--{option} and --set of the same setting", "leave out one of them")
    return Overrides(**typed, **by_path.overrides, others=by_path.others)


def apply(
    experiment: Experiment, overrides: Overrides, in_process: Callable[[str], bool], engine: str
) -> Experiment:
    """The experiment with the command line's changes. Raises UsageError.

    `in_process` says whether a client is a cache inside the worker's own process. `engine`
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
    changed["rounds"] = _rounds(experiment, overrides)
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
    if overrides.measure_ms is not None:
        workloads = without_own(workloads, "ops")
    ended = with_end(workloads, ops=overrides.ops, fill=overrides.fill, scale=overrides.scale)
    changed["workloads"] = typed_workloads(ended, typed, preset)
    if overrides.warmup_ms is not None:
        changed["workloads"] = without_own(changed["workloads"], "warmup_ms")
    result = with_others(replaced(experiment, **changed), overrides.others)
    result = own_question(result, typed, clients_typed=bool(overrides.client))
    result = _designed(
        result, overrides, typed, changed=bool(typed or overrides.others) or ended != workloads
    )
    check(result, "command line")
    return result


def _rounds(experiment: Experiment, overrides: Overrides) -> RoundsTiming:
    return replaced(
        experiment.rounds,
        slice_ms=overrides.slice_ms,
        until=overrides.until,
        max_s=None if overrides.max is None else seconds(overrides.max),
    )


def _blocks(experiment: Experiment, overrides: Overrides) -> dict[str, int | None]:
    """The typed number of blocks, and of valid trials where trials are replayed."""
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
    if window_typed:
        check_window(experiment.workloads)
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
    """The typed servers, those to add, and their distance; None to keep the experiment's."""
    base = overrides.server or tuple(experiment.servers)
    servers = list(dict.fromkeys([*base, *overrides.add_server]))
    if overrides.round_trip is not None:
        return [f"distant:{overrides.round_trip}:{server}" for server in servers]
    return servers


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


def seconds(text: str) -> int:
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
    # Loads that differ only in their threads become one; the names of the others stay distinct.
    alike = [load for load in all_loads if _without_threads(load) == _without_threads(old)]
    stem = re.sub(r"-?[0-9]+-threads$", "", _renamed_wire(alike[0], overrides.wire))
    prefix = f"{stem}-" if stem and len(alike) < len(all_loads) else ""
    # The count first: else the error would name the load's name, which is made of it.
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


def planned_experiment(name: str, overrides: Overrides) -> Experiment:
    """The suite or file of that name, with the typed options. Raises UsageError."""
    return changed_experiment(suites.find(name, quick=overrides.quick), overrides)


def changed_experiment(experiment: Experiment, overrides: Overrides) -> Experiment:
    """An experiment with the typed options. Raises UsageError."""
    engine = process.binary_path()
    known = registry(engine)
    return apply(
        expand(experiment, engine),
        replace(overrides, client=matching_clients(overrides.client, known)),
        lambda text: parse_client(text, known).client.in_process,
        engine,
    )
