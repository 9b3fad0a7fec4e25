"""Whether items and sittings fit into memory, and windows are long enough for a p99.

A server that has not enough memory evicts: gets miss, and the figures are of other work. All
processes of a sitting are alive together: too many of them would make the machine reclaim memory
while it measures, or end the run halfway.
"""

import math
from collections.abc import Iterator, Mapping

from cachemark.analysis.number_format import count_of, number
from cachemark.analysis.percentiles import min_sample_size
from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import MemoryLimit, ServerSpec, memory_limit
from cachemark.host.memory import check_planned_memory
from cachemark.model.experiment import Load
from cachemark.model.outcome import Cell
from cachemark.model.plan import NO_SERVER, Plan
from cachemark.model.units import MIB
from cachemark.runs.planning.languages import cost_of
from cachemark.runs.tapes import DataSet
from cachemark.runs.trials.callers import processes_of

_MIB = 2**20
# A server with few items. What it may store beyond is only used by experiments that fill it.
_SERVER_MIB = 24
_PERCENT = 99.0
# With this many operations above a percentile, one disturbance does not withhold it.
_ABOVE = 20
_STEP_MS = 100
# Part of the limit: above it the estimate is too rough to say that all items fit.
_SAFE_PART = 0.9
# The advice has some room.
_ADVISED_FACTOR = 1.25
_ADVISED_STEP_MIB = 8


def lines_about_fit(
    plan: Plan, servers: Mapping[str, ServerSpec], data: Mapping[tuple[str, str], DataSet]
) -> list[str]:
    """A line for each server and workload whose items may not all fit; `data` by workload and load.

    A workload that fills the server up to a part of its memory is not judged.
    """
    lines: dict[str, None] = {}
    for cell in plan.playable:
        if cell.server == NO_SERVER or plan.workload(cell).fill_percent is not None:
            continue
        limit = memory_limit(servers[cell.server])
        if limit is not None:
            line = _line(cell.server, cell.workload, limit, data[cell.workload, cell.load])
            lines |= {line: None} if line else {}
    return list(lines)


def _line(server: str, workload: str, limit: MemoryLimit, data: DataSet) -> str:
    needed = limit.model.needed_bytes(data.items, data.data_bytes)
    if needed <= _SAFE_PART * limit.limit_bytes:
        return ""
    each = needed * _ADVISED_FACTOR / limit.members / MIB
    advised = math.ceil(each / _ADVISED_STEP_MIB) * _ADVISED_STEP_MIB
    likely = "will" if needed > limit.limit_bytes else "may"
    return (
        f"{workload}: {number(data.items)} items need about {_mib(needed)} MiB, and "
        f"{server} has {_mib(limit.limit_bytes)} MiB: it {likely} evict, and gets miss; "
        f"give it more: memory={advised}m"
    )


def _mib(count: float) -> str:
    return f"{count / MIB:,.0f}"


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
        line = _window_line(load, plan.experiment.timing.measure_ms)
        if line:
            yield line


def _window_line(load: Load, measure_ms: int) -> str:
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
        f"{load.name}: a window of {number(round(played))} operations ({number(rate)}/s × "
        f"{measure_ms / 1e3:g} s) {has}; longer windows show it: --duration {longer / 1e3:g}s"
    )


def check_sitting_memory(plan: Plan, clients: Mapping[str, ClientSpec]) -> None:
    """Raise UsageError if a sitting of the plan does not fit into the machine's memory."""
    together = max((len(sitting.trials) for sitting in plan.sittings), default=0)
    check_planned_memory(f"{together} clients, each with its server", sitting_bytes(plan, clients))


def sitting_bytes(plan: Plan, clients: Mapping[str, ClientSpec]) -> int:
    """Bytes of memory that the largest sitting of a plan needs; 0 without sittings."""
    return max(
        (
            sum(
                _arm_bytes(plan, trial.cell, clients[trial.cell.client]) for trial in sitting.trials
            )
            for sitting in plan.sittings
        ),
        default=0,
    )


def _arm_bytes(plan: Plan, cell: Cell, spec: ClientSpec) -> int:
    load, client = plan.load(cell), spec.client
    workers = processes_of(load, client.concurrency)
    if client.concurrency == "forks":
        workers *= 1 + load.threads
    each_mib = cost_of(client.id.partition("/")[0]).memory_mib
    return (workers * each_mib + _SERVER_MIB) * _MIB
