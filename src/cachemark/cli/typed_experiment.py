"""Typed work, put into an experiment: its workloads, its question, its design. Pure."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.search_steps import parse_objective
from cachemark.model.work_length import ending_after, plays_to_an_end, scaled
from cachemark.model.work_settings import WorkSettings, with_settings

# A window of a trial, where the experiment's own is only long enough for turns.
MIN_WINDOW_MS = 1000


def typed_workloads(
    workloads: Sequence[Workload], typed: WorkSettings, preset: WorkSettings | None
) -> list[Workload]:
    """The workloads with the typed settings. Workloads that then play the same work become one."""
    variants = [with_settings(workload, typed, preset) for workload in workloads]
    if not typed.changes_work:
        return variants
    by_work: dict[bytes, Workload] = {}
    for old, workload in zip(workloads, variants, strict=True):
        work = msgspec.json.encode(msgspec.structs.replace(workload, name="w", loads=None))
        if work in by_work:
            loads = _joined(by_work[work].loads, workload.loads)
            by_work[work] = msgspec.structs.replace(by_work[work], loads=loads)
        elif any(workload.name == other.name for other in by_work.values()):
            by_work[work] = msgspec.structs.replace(workload, name=f"{workload.name}-{old.name}")
        else:
            by_work[work] = workload
    return list(by_work.values())


def _joined(first: list[str] | None, second: list[str] | None) -> list[str] | None:
    """The loads of both workloads; None is all loads."""
    if first is None or second is None:
        return None
    return list(dict.fromkeys([*first, *second]))


def own_question(experiment: Experiment, typed: WorkSettings, *, clients_typed: bool) -> Experiment:
    """An experiment whose clients or work were typed does not answer the suite's question."""
    if not (clients_typed or typed):
        return experiment
    clients = [*experiment.clients, *experiment.in_process]
    if len(clients) > 1:
        question = "Which of these clients is fastest with this work?"
    elif len(experiment.servers) > 1:
        question = f"Which of these servers is fastest for {clients[0]} with this work?"
    else:
        question = f"How fast is {clients[0]} with this work?"
    return msgspec.structs.replace(experiment, question=question, analysis="")


def suited_design(experiment: Experiment, *, window_typed: bool) -> Experiment:
    """Trials instead of rounds, where the typed work cannot be played in turns."""
    opened = any(load.schedule != "closed" for load in experiment.loads)
    whole = any(map(plays_to_an_end, experiment.workloads))
    if experiment.design != "rounds" or not (opened or whole):
        return experiment
    timing = experiment.timing
    if not window_typed and timing.measure_ms < MIN_WINDOW_MS:
        timing = msgspec.structs.replace(timing, measure_ms=MIN_WINDOW_MS)
    return msgspec.structs.replace(experiment, design="trials", timing=timing)


# Searches of each cell, where no number of blocks is typed: enough to see how far they scatter.
_BLOCKS = 3


def searched(
    experiment: Experiment,
    text: str,
    typed: WorkSettings,
    *,
    blocks: int | None,
    window_typed: bool,
    twice: str | None,
    design: str | None,
) -> Experiment:
    """The experiment as a search. Raises UsageError for options that contradict it."""
    parse_objective(text, "--search")
    if "rate" in typed.load:
        raise UsageError("--search tries rates itself", "leave out --rate")
    schedule = str(typed.load.get("schedule", ""))
    if schedule == "closed" or schedule.startswith("replay"):
        raise UsageError(
            "--search tries rates, but a closed loop or a replay has no rate",
            "leave out --schedule, or use poisson, uniform, gpareto or bursts",
        )
    if typed.load.get("think"):
        raise UsageError("--search plays open loops, which have no think time", "leave out --think")
    if design == "rounds":
        raise UsageError("--search plays trials, not rounds", "leave out --design rounds")
    timing = experiment.timing
    if not window_typed and timing.measure_ms < MIN_WINDOW_MS:
        timing = msgspec.structs.replace(timing, measure_ms=MIN_WINDOW_MS)
    return msgspec.structs.replace(
        experiment,
        search=text,
        question=f"Which is the highest rate with {text}?",
        analysis="",
        design="trials",
        blocks=blocks or _BLOCKS,
        timing=timing,
        twice=twice or "",
        loads=[_opened(load) for load in experiment.loads],
    )


def _opened(load: Load) -> Load:
    """Poisson arrivals in the place of a closed loop, or of a fixed rate."""
    schedule = "poisson" if load.schedule == "closed" else load.schedule
    return msgspec.structs.replace(load, schedule=schedule, rate=None, think=None)


_MAX_SCALE = 1000
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def with_end(
    workloads: Sequence[Workload], *, ops: int | None, fill: float | None, scale: float | None
) -> list[Workload]:
    """The workloads with the typed end. Raises UsageError."""
    if fill is not None and all(one.fill_percent is None for one in workloads):
        raise UsageError("--fill: no workload fills a server", "one with fill_percent does")
    return [_with_end(workload, ops, fill, scale) for workload in workloads]


def _with_end(
    workload: Workload, ops: int | None, fill: float | None, scale: float | None
) -> Workload:
    if ops is not None:
        workload = ending_after(workload, ops)
    if fill is not None and workload.fill_percent is not None:
        if not 0 < fill < 100:
            raise UsageError(f"--fill {fill:g}: not a percentage", "write one between 0 and 100")
        workload = msgspec.structs.replace(workload, fill_percent=fill)
    if scale is not None:
        if not 0 < scale <= _MAX_SCALE:
            remedy = f"write a number above 0, and at most {_MAX_SCALE}"
            raise UsageError(f"--scale {scale:g}: out of range", remedy)
        workload = scaled(workload, scale)
    return replaced(workload)


def without_own(workloads: Sequence[Workload], setting: str) -> list[Workload]:
    """The workloads without their own `warmup_ms` or `ops`, as a time was typed."""
    return [msgspec.structs.replace(workload, **{setting: None}) for workload in workloads]


def check_window(workloads: Sequence[Workload]) -> None:
    """A typed length of the window needs a workload that ends by it. Raises UsageError."""
    if all(map(plays_to_an_end, workloads)):
        remedy = "leave it out, or what ends the workload: --ops, --trace or a fill"
        raise UsageError("--measure-ms: each workload ends by itself", remedy)


def without_none(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def replaced(value: _Struct, **fields: Any) -> _Struct:
    """Change the given fields, and check the result as if it were read from a file.

    Raises UsageError, which names the option.
    """
    changed = msgspec.structs.replace(value, **without_none(**fields))
    try:
        return msgspec.convert(msgspec.to_builtins(changed), type(value))
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        option = place.rstrip("`").replace("_", "-")
        raise UsageError(f"--{option}: {what}") from error
