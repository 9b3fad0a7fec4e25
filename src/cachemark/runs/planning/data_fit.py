"""Whether the items of a tape fit into the memory of the servers. Pure.

A server that has not enough memory evicts: gets miss, and the figures are of other work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from cachemark.analysis.number_format import number
from cachemark.endpoints.servers import MemoryLimit, ServerSpec, memory_limit
from cachemark.model.plan import NO_SERVER, Plan
from cachemark.model.units import MIB
from cachemark.runs.tapes import DataSet

# Of the limit: above it the estimate is too rough to say that all items fit.
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
