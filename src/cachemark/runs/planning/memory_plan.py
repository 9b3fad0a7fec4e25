"""How much memory a sitting needs at once, before anything starts.

All processes of a sitting are alive together. Too many of them would make the machine reclaim
memory while it measures, or end the run halfway.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachemark.endpoints.clients import ClientSpec
from cachemark.host.memory import check_planned_memory
from cachemark.model.outcome import Cell
from cachemark.model.plan import Plan
from cachemark.runs.planning.languages import cost_of
from cachemark.runs.trials.callers import processes_of

_MIB = 2**20
# A server with few items. What it may store beyond is only used by experiments that fill it.
_SERVER_MIB = 24


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
