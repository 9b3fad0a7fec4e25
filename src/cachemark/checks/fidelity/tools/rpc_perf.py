"""rpc-perf 5: percentiles of each window in its log, in µs."""

import re
from pathlib import Path

from msgspec.structs import replace

from cachemark.checks.fidelity.tools.tool import (
    Tool,
    ToolJob,
    ToolResult,
    percent,
    unreadable,
    with_settings,
)

_CONFIG = Path(__file__).with_name("rpc_perf.toml.template")
_FILL_S = 6
_LINE = re.compile(r"Client Response Latency \(us\):(.*)$", re.M)
_VALUE = re.compile(r"(?:p(\d+)|max): (\d+)")


def command(job: ToolJob) -> list[str]:
    """Write the settings file of reads; returns the command line. No rate means a closed loop."""
    return _command(job, "get")


def fill(job: ToolJob) -> list[str]:
    """The same with sets of random keys, long enough to meet each of some 10,000 keys."""
    return _command(replace(job, closed_s=_FILL_S), "set")


def _command(job: ToolJob, verb: str) -> list[str]:
    # The table has to be there; without a start there is no limit.
    rate = f"start = {job.rate}" if job.rate else ""
    return with_settings(job, _CONFIG, verb=verb, rate=rate)


def read(_job: ToolJob, output: str) -> ToolResult:
    """The percentiles of the last window. Raises TrialError."""
    windows = _LINE.findall(output)
    if not windows:
        raise unreadable("rpc-perf", output)
    reported = _VALUE.findall(windows[-1])
    return ToolResult(
        percentiles_ms={percent(name or "100"): int(value) / 1e3 for name, value in reported}
    )


TOOL = Tool(
    name="rpc-perf",
    programs=("rpc-perf",),
    home="https://github.com/iopsystems/rpc-perf",
    tried="5.25.2-alpha.0, commit 83a2744",
    schedules=("closed", "uniform"),
    verifies="hit or miss, length",
    fill=fill,
    command=command,
    read=read,
)
