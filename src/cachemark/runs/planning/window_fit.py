"""Whether the windows of open loops are long enough for a p99. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cachemark.analysis.number_format import count_of, number
from cachemark.analysis.percentiles import min_sample_size
from cachemark.model.experiment import Load
from cachemark.model.plan import Plan

_PERCENT = 99.0
# So many operations above a percentile: then one disturbance does not withhold it.
_ABOVE = 20
_STEP_MS = 100


def lines_about_windows(plan: Plan) -> list[str]:
    """A line for each load that plays too few operations in a window, with the length it needs.

    A window by a number of operations, a trace, and a search have no such length.
    """
    if plan.experiment.search:
        return []
    return list(dict.fromkeys(_lines(plan)))


def _lines(plan: Plan) -> Iterator[str]:
    for cell in plan.playable:
        load, workload = plan.load(cell), plan.workload(cell)
        if load.rate is None or workload.ops is not None or workload.trace:
            continue
        line = _line(load, plan.experiment.timing.measure_ms)
        if line:
            yield line


def _line(load: Load, measure_ms: int) -> str:
    rate = load.rate or 0.0
    played = rate * measure_ms / 1e3
    wanted = _ABOVE / (1 - _PERCENT / 100)
    if played >= wanted:
        return ""
    above = math.floor(played * (1 - _PERCENT / 100))
    longer = math.ceil(wanted / rate * 1e3 / _STEP_MS) * _STEP_MS
    least = min_sample_size(_PERCENT)
    has = (
        f"has no p99, which takes {least}"
        if played < least
        else f"has {count_of(above, 'operation')} above its p99, so any disturbance withholds it"
    )
    return (
        f"{load.name}: a window of {number(played)} operations ({number(rate)}/s × "
        f"{measure_ms / 1e3:g} s) {has}; longer windows show it: --measure-ms {longer}"
    )
