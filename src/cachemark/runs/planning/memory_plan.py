"""How much memory a sitting needs at once, before anything starts. Pure.

All processes of a sitting are alive together. Too many of them would make the machine reclaim
memory while it measures, or end the run halfway.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachemark.endpoints.clients import ClientSpec
from cachemark.model.outcome import Cell
from cachemark.model.plan import Plan
from cachemark.runs.trials.callers import processes_of

_MIB = 2**20
# The resident memory of one worker process in a sitting: that of the language's largest client in
# the column `memory` of `python benchmarks/slices.py CLIENT…`, and about half of it more, as
# experiments have larger tapes. It includes the runtime and the library.
WORKER_MIB = {
    "c": 16,
    "go": 40,
    "java": 220,
    "native": 48,
    "node": 120,
    "perl": 30,
    "php": 40,
    "pypy": 150,
    "python": 50,
    "reference": 30,
    "ruby": 50,
    "rust": 16,
}
# A worker in a language that is not in the table.
_OTHER_WORKER_MIB = 64
# A server with few items. What it may store beyond is only used by experiments that fill it.
_SERVER_MIB = 24


def sitting_bytes(plan: Plan, clients: Mapping[str, ClientSpec]) -> int:
    """What the largest sitting of a plan needs; 0 without sittings."""
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
    each = WORKER_MIB.get(client.id.partition("/")[0], _OTHER_WORKER_MIB)
    return (workers * each + _SERVER_MIB) * _MIB
