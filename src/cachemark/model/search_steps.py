"""A search for the highest rate: its objective, and a closed loop, then open ones at several rates.

An experiment with `search` lists loads without a rate. Each step of a search plays one of them at a
rate, as a load of its own, such as `poisson-12300-rate`. So trials at different rates are different
cells. If the client limited a search, another search plays more threads. Pure.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.units import NS

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_OBJECTIVE = re.compile(rf"p({_NUMBER})\s*<\s*({_NUMBER})\s?({'|'.join(NS)})")
EXAMPLE = "p99<1ms"
# A search plays a closed loop, about six rates, missed rates again, and both ends once more.
TYPICAL_TRIALS = 12
# The most that a search plays: each of its steps at most three times, and both ends twice more.
MAX_TRIALS = 32
# A search with the threads of its load, and a search with more.
MAX_SEARCHES = 2


def closed_step(load: Load) -> Load:
    """The first step: a closed loop, whose rate no open loop can exceed."""
    return msgspec.structs.replace(load, name=f"{load.name}-closed", schedule="closed", rate=None)


def rate_step(load: Load, rate: float) -> Load:
    """A step at a rate."""
    return msgspec.structs.replace(load, name=f"{load.name}-{rate:g}-rate", rate=rate)


def wider_load(load: Load, threads: int) -> Load:
    """A load with more threads."""
    return msgspec.structs.replace(load, name=f"{load.name}-{threads}-threads", threads=threads)


def besides_callers(load: Load) -> Load:
    """A load without the settings of its connections: equal for loads that differ only in them."""
    return msgspec.structs.replace(
        load, name="load", connections=None, threads=1, processes=1, hosts=None
    )


class Base(NamedTuple):
    """The load that a step plays at its rate, and the load as `written` in the experiment."""

    load: Load
    written: Load


def base_of(experiment: Experiment, step: Load) -> Base | None:
    """The load of the experiment that a step plays; None if there is none."""
    return next((base for load in experiment.loads if (base := _base(load, step))), None)


def _base(written: Load, step: Load) -> Base | None:
    load = written if step.threads <= written.threads else wider_load(written, step.threads)
    same = closed_step(load) if step.rate is None else rate_step(load, step.rate)
    return Base(load, written) if step == same else None


def closed_experiment(experiment: Experiment) -> Experiment:
    """The experiment with each load replaced by its first step, unless it is one already."""
    return _with_loads(
        experiment, lambda load: [load if load.schedule == "closed" else closed_step(load)]
    )


def played_experiment(experiment: Experiment, steps: Iterable[Load]) -> Experiment:
    """The experiment with its loads replaced by the steps that were played."""
    by_rate = sorted(
        {step.name: step for step in steps}.values(), key=lambda step: step.rate or 0.0
    )
    return _with_loads(experiment, lambda load: [step for step in by_rate if _base(load, step)])


def _with_loads(experiment: Experiment, steps_of: Callable[[Load], list[Load]]) -> Experiment:
    steps = {load.name: steps_of(load) for load in experiment.loads}
    return msgspec.structs.replace(
        experiment,
        loads=[step for of_load in steps.values() for step in of_load],
        workloads=[_with_steps(workload, steps) for workload in experiment.workloads],
    )


def _with_steps(workload: Workload, steps: dict[str, list[Load]]) -> Workload:
    if workload.loads is None:
        return workload
    names: Sequence[str] = [step.name for load in workload.loads for step in steps[load]]
    return msgspec.structs.replace(workload, loads=list(names))


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile of the response time, and its upper limit."""

    percent: float
    below_ns: int

    @property
    def percentile(self) -> str:
        """Such as `p99.9`."""
        return f"p{self.percent:g}"


def parse_objective(text: str, place: str) -> Objective:
    """Read an objective. Raises UsageError, which names `place`."""
    match = _OBJECTIVE.fullmatch(text.strip())
    percent = float(match[1]) if match else 0.0
    if match is None or not 0 < percent < 100:
        raise UsageError(f"{place}: {text!r} is no objective", f"write {EXAMPLE} or p99.9<500us")
    return Objective(percent=percent, below_ns=round(float(match[2]) * NS[match[3]]))
