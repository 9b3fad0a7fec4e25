"""cachecannon: JSON lines, percentiles in µs; in an open loop since the intended start."""

import json
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

_CONFIG = Path(__file__).with_name("cachecannon.toml.template")
# By default it waits until it may send as many requests as the depth allows.
_SINGLY = "batch_size = 1"
# Its rate limiter lets a second's operations go at once at the start.
_OPEN_WARMUP_S = 2
_NAME = re.compile(r"p(\d+)_us")


def command(job: ToolJob) -> list[str]:
    """Write the settings file of reads; returns the command line."""
    return _command(job, prefill="false")


def fill(job: ToolJob) -> list[str]:
    """The same, after each key was stored once."""
    return _command(replace(job, closed_s=1), prefill="true")


def _command(job: ToolJob, prefill: str) -> list[str]:
    return with_settings(
        job,
        _CONFIG,
        warmup_s=_OPEN_WARMUP_S if job.rate else 0,
        batches=_SINGLY if job.rate else "",
        prefill=prefill,
        rate=f"rate_limit = {job.rate}" if job.rate else "",
    )


def read(job: ToolJob, output: str) -> ToolResult:
    """The perceived latency if it is reported, else the latency of gets. Raises TrialError."""
    results = [line for line in output.splitlines() if '"type":"result"' in line]
    if not results:
        raise unreadable("cachecannon", output)
    reported = json.loads(results[-1])
    times = (reported.get("perceived_latency") if job.rate else None) or reported["get"]
    matches = [(_NAME.fullmatch(name), value) for name, value in times.items()]
    percentiles = {percent(name[1]): value / 1e3 for name, value in matches if name}
    return ToolResult(percentiles_ms={**percentiles, 100: times["max_us"] / 1e3})


TOOL = Tool(
    name="cachecannon",
    programs=("cachecannon",),
    home="https://github.com/cachecannon/cachecannon",
    tried="0.0.20-alpha, commit 31a2bef",
    schedules=("closed", "uniform"),
    verifies="hit or miss, length",
    pipelines=True,
    fill=fill,
    command=command,
    read=read,
)
