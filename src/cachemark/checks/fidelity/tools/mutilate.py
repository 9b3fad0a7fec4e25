"""mutilate: a row of percentiles in µs, from buckets that are 10 % wide."""

import re

from cachemark.checks.fidelity.tools.tool import KEY_BYTES, Tool, ToolJob, ToolResult, unreadable

_COLUMN = re.compile(r"(\d+)(?:st|nd|rd|th)")


def command(job: ToolJob) -> list[str]:
    """The command line of reads."""
    load = job.load
    words = [*_common(job), "--noload", "-c", str(load.callers), "-d", str(job.depth)]
    words += ["-t", str(job.seconds), "-u", "0.0"]
    if job.saves_cpu:
        # Without this it spins while it waits.
        words.append("--blocking")
    if not job.rate:
        return words
    # The tool replaces the parameter by one for the rate, and crashes if there is none.
    arrivals = "exponential:1" if load.schedule == "poisson" else "fixed:1"
    return [*words, "-q", str(job.rate), "-i", arrivals]


def fill(job: ToolJob) -> list[str]:
    """The command line that stores each key once."""
    return [*_common(job), "--loadonly"]


def _common(job: ToolJob) -> list[str]:
    load = job.load
    words = [job.program, "-s", job.server, "-T", "1", "-r", str(load.keys)]
    return [*words, "-K", str(KEY_BYTES), "-V", str(load.value_bytes)]


def read(_job: ToolJob, output: str) -> ToolResult:
    """The columns of its table that are percentiles. Raises TrialError."""
    rows = [line.split() for line in output.splitlines() if line.strip()]
    head = next((row for row in rows if row[0] == "#type"), None)
    values = next((row for row in rows if row[0] == "read"), None)
    if not head or not values:
        raise unreadable("mutilate", output)
    reported = zip(head[1:], values[1:], strict=False)
    matches = [(_COLUMN.fullmatch(column), value) for column, value in reported]
    return ToolResult(
        percentiles_ms={float(column[1]): float(value) / 1e3 for column, value in matches if column}
    )


TOOL = Tool(
    name="mutilate",
    programs=("mutilate", "mcperf"),
    home="https://github.com/leverich/mutilate",
    tried="0.1, commit d65c6ef",
    schedules=("closed", "uniform", "poisson"),
    verifies="hit or miss, length",
    pipelines=True,
    fill=fill,
    command=command,
    read=read,
)
