"""mutilate: a row of percentiles in µs, from buckets that are 10 % wide."""

from __future__ import annotations

import re

from cachemark.checks.fidelity.tools.tool import Tool, ToolJob, ToolResult, unreadable

_COLUMN = re.compile(r"(\d+)(?:st|nd|rd|th)")


def command(job: ToolJob) -> list[str]:
    """The command line, without a load phase: a miss takes as long here as a hit."""
    load = job.load
    words = [job.program, "-s", job.server, "-T", "1", "-c", str(load.callers), "-d", "1"]
    words += ["-t", str(job.seconds), "-u", "0.0", "-r", str(load.keys), "--noload"]
    words += ["-V", str(load.value_bytes)]
    if not job.rate:
        return words
    arrivals = "exponential" if load.schedule == "poisson" else "fixed"
    return [*words, "-q", str(job.rate), "-i", arrivals]


def read(_job: ToolJob, output: str) -> ToolResult:
    """The columns of its table that are percentiles. Raises TrialError."""
    rows = [line.split() for line in output.splitlines() if line.strip()]
    head = next((row for row in rows if row[0] == "#type"), None)
    values = next((row for row in rows if row[0] == "read"), None)
    if not head or not values:
        raise unreadable("mutilate", output)
    reported = zip(head[1:], values[1:], strict=False)
    found = [(_COLUMN.fullmatch(column), value) for column, value in reported]
    return ToolResult(
        percentiles_ms={float(column[1]): float(value) / 1e3 for column, value in found if column}
    )


TOOL = Tool(
    name="mutilate",
    programs=("mutilate", "mcperf"),
    home="https://github.com/leverich/mutilate",
    schedules=("closed", "uniform", "poisson"),
    command=command,
    read=read,
)
