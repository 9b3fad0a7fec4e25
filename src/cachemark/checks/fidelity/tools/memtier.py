"""memtier_benchmark: percentiles from its JSON file, in ms."""

import json

from cachemark.checks.fidelity.tools.tool import KEY_BYTES, Tool, ToolJob, ToolResult
from cachemark.model.errors import TrialError

_PERCENTS = "50,75,80,90,95,97,98,99,99.5,100"
_FILE = "memtier.json"


def command(job: ToolJob) -> list[str]:
    """The command line of reads. Its rate is per connection."""
    load = job.load
    words = [*_common(job), "--clients", str(load.callers), "--pipeline", str(job.depth)]
    words += ["--ratio", "0:1", "--test-time", str(job.seconds)]
    words += ["--print-percentiles", _PERCENTS, "--json-out-file", str(job.folder / _FILE)]
    return [*words, "--rate-limiting", str(job.rate // load.callers)] if job.rate else words


def fill(job: ToolJob) -> list[str]:
    """The command line that stores each key once."""
    words = [*_common(job), "--clients", "1", "--ratio", "1:0", "--key-pattern", "P:P"]
    return [*words, "--requests", "allkeys"]


def _common(job: ToolJob) -> list[str]:
    load = job.load
    words = [job.program, "--server", "127.0.0.1", "--port", str(job.port)]
    words += ["--protocol", "memcache_text", "--threads", "1", "--hide-histogram"]
    words += ["--data-size", str(load.value_bytes)]
    words += ["--key-prefix", "k" * (KEY_BYTES - len(str(load.keys)))]
    return [*words, "--key-minimum", "1", "--key-maximum", str(load.keys)]


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
    tried="after 2.3.0, commit 2f74d61",
    schedules=("closed", "uniform"),
    verifies="hit or miss, length",
    pipelines=True,
    fill=fill,
    command=command,
    read=read,
)
