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
from cachemark.checks.fidelity.tools.tool import Tool, ToolJob, ToolResult

TOOLS = {
    tool.name: tool
    for tool in (
        memtier.TOOL,
        mutilate.TOOL,
        mc_crusher.TOOL,
        rpc_perf.TOOL,
        cachecannon.TOOL,
        memaslap.TOOL,
        ycsb.TOOL,
    )
}

__all__ = ["TOOLS", "Tool", "ToolJob", "ToolResult", "tool_results"]
