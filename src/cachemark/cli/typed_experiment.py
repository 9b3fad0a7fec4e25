"""Typed work, put into an experiment: its workloads, its question, its design. Pure."""

from collections.abc import Sequence

import msgspec

from cachemark.model.experiment import Experiment, Workload
from cachemark.model.work_length import plays_to_an_end
from cachemark.model.work_settings import WorkSettings, with_settings

# A window of a trial, where the experiment's own is only long enough for turns.
MIN_WINDOW_MS = 1000


def typed_workloads(
    workloads: Sequence[Workload], typed: WorkSettings, preset: WorkSettings | None
) -> list[Workload]:
    """The workloads with the typed settings. What then plays the same work becomes one."""
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
