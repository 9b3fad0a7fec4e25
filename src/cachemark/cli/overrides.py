"""What the command line may change of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from cyclopts import Parameter

from cachemark.errors import UsageError
from cachemark.experiment import Experiment, Load, check


@dataclass(frozen=True)
class Overrides:
    """Options that take the place of what the experiment says."""

    client: Annotated[
        tuple[str, ...], Parameter(negative="", help="instead of the experiment's (repeat it)")
    ] = ()
    server: Annotated[
        tuple[str, ...], Parameter(negative="", help="instead of the experiment's (repeat it)")
    ] = ()
    workload: Annotated[
        tuple[str, ...], Parameter(negative="", help="only these of the experiment's")
    ] = ()
    blocks: Annotated[int | None, Parameter(help="repetitions of the whole grid")] = None
    seed: Annotated[int | None, Parameter(help="of the plan and the tapes")] = None
    warmup_ms: Annotated[int | None, Parameter(help="warm-up of each trial")] = None
    measure_ms: Annotated[int | None, Parameter(help="measured window of each trial")] = None
    timeout_ms: Annotated[int | None, Parameter(help="of one operation")] = None
    threads: Annotated[
        tuple[int, ...], Parameter(negative="", help="one load for each count (repeat it)")
    ] = ()
    connections: Annotated[int | None, Parameter(help="per worker process")] = None
    depth: Annotated[int | None, Parameter(help="outstanding per connection")] = None
    processes: Annotated[int | None, Parameter(help="worker processes")] = None
    schedule: Literal["closed", "uniform", "poisson"] | None = None
    rate: Annotated[float | None, Parameter(help="operations per second, open loop")] = None
    server_cpus: Annotated[str | None, Parameter(help="such as 0-1; auto; none")] = None
    worker_cpus: Annotated[str | None, Parameter(help="such as 2,3; auto; none")] = None
    quick: Annotated[bool, Parameter(negative="", help="the suite's small grid")] = False


def apply(experiment: Experiment, overrides: Overrides) -> Experiment:
    """The experiment with the command line's changes. Raises UsageError."""
    changed: dict[str, Any] = _given(
        clients=list(overrides.client) or None,
        servers=list(overrides.server) or None,
        blocks=overrides.blocks,
        seed=overrides.seed,
    )
    changed["timing"] = _replace(
        experiment.timing,
        warmup_ms=overrides.warmup_ms,
        measure_ms=overrides.measure_ms,
        timeout_ms=overrides.timeout_ms,
    )
    changed["placement"] = _replace(
        experiment.placement, server=overrides.server_cpus, worker=overrides.worker_cpus
    )
    changed["workloads"] = _chosen(experiment, overrides)
    changed["loads"] = [
        load for old in experiment.loads for load in _loads(old, overrides, experiment.loads)
    ]
    result = _replace(experiment, **changed)
    check(result, "command line")
    return result


def _chosen(experiment: Experiment, overrides: Overrides) -> list[Any]:
    known = [workload.name for workload in experiment.workloads]
    for name in overrides.workload:
        if name not in known:
            raise UsageError(
                f"--workload {name}: no such workload in {experiment.name}",
                f"it has: {', '.join(known)}",
            )
    wanted = overrides.workload or known
    return [workload for workload in experiment.workloads if workload.name in wanted]


def _loads(old: Load, overrides: Overrides, all_loads: list[Load]) -> list[Load]:
    base = _replace(
        old,
        connections=overrides.connections,
        depth=overrides.depth,
        processes=overrides.processes,
        schedule=overrides.schedule,
        rate=overrides.rate,
    )
    if not overrides.threads:
        return [base]
    if len(all_loads) > 1:
        raise UsageError(
            "--threads: the experiment has several loads of its own",
            "choose the workloads in a TOML file with the loads that you want",
        )
    return [
        _replace(base, name=f"{threads}-threads", threads=threads) for threads in overrides.threads
    ]


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def _replace(value: _Struct, **fields: Any) -> _Struct:
    """The value with the given fields changed and checked as if read from a file."""
    changed = msgspec.structs.replace(value, **_given(**fields))
    try:
        return msgspec.convert(msgspec.to_builtins(changed), type(value))
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        option = place.rstrip("`").replace("_", "-")
        raise UsageError(f"--{option}: {what}") from error
