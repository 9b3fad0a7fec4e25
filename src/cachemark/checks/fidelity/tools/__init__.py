"""Other load generators on the same cases: one adapter per file. A tool must be on PATH."""

from cachemark.checks.fidelity.tools import (
    cachecannon,
    mc_crusher,
    memaslap,
    memtier,
    mutilate,
    rpc_perf,
    ycsb,
)
from cachemark.checks.fidelity.tools.run import tool_results
from cachemark.checks.fidelity.tools.tool import Tool, ToolJob

TOOLS = {
    module.TOOL.name: module.TOOL
    for module in (memtier, mutilate, mc_crusher, rpc_perf, cachecannon, memaslap, ycsb)
}
