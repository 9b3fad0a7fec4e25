"""memtier_benchmark: percentiles from its JSON file, in ms."""

from __future__ import annotations

import json

from cachemark.checks.fidelity.tools.tool import Tool, ToolJob, ToolResult
from cachemark.model.errors import TrialError

_PERCENTS = "50,75,80,90,95,97,98,99,99.5,100"
_FILE = "memtier.json"


def command(job: ToolJob) -> list[str]:
    """The command line. Its rate is per connection."""
    load = job.load
    words = [job.program, "--server", "127.0.0.1", "--port", str(job.port)]
    words += ["--protocol", "memcache_text", "--threads", "1", "--clients", str(load.callers)]
    words += ["--pipeline", "1", "--ratio", "0:1", "--data-size", str(load.value_bytes)]
    words += ["--key-minimum", "1", "--key-maximum", str(load.keys), "--hide-histogram"]
    words += ["--print-percentiles", _PERCENTS, "--json-out-file", str(job.folder / _FILE)]
    words += ["--test-time", str(job.seconds)]
    return [*words, "--rate-limiting", str(job.rate // load.callers)] if job.rate else words


def read(job: ToolJob, _output: str) -> ToolResult:
    """The percentiles of its gets. Raises TrialError."""
    try:
        reported = json.loads((job.folder / _FILE).read_text(encoding="utf-8"))
        percentiles = reported["ALL STATS"]["Gets"]["Percentile Latencies"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrialError(f"memtier_benchmark: no times in its JSON file: {error!r}") from error
    return ToolResult(
        percentiles_ms={
            float(name[1:]): float(value)
            for name, value in percentiles.items()
            if name.startswith("p") and isinstance(value, int | float)
        }
    )


TOOL = Tool(
    name="memtier_benchmark",
    programs=("memtier_benchmark",),
    home="https://github.com/redis/memtier_benchmark",
    schedules=("closed", "uniform"),
    command=command,
    read=read,
)
