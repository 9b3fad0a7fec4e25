"""YCSB's memcached binding: percentiles in µs, in an open loop from the intended start."""

import re

from cachemark.checks.fidelity.tools.tool import Tool, ToolJob, ToolResult, unreadable

_PERCENTS = "50,75,80,90,95,97,98,99,99.5"
# A value is a JSON object with one field: these bytes, and the field.
_JSON_BYTES = len('{"field0":""}')
_TIMES = re.compile(
    r"^\[(Intended-)?READ\], (?:([\d.]+)(?:st|nd|rd|th)?Percentile|(Max))Latency\(us\), ([\d.]+)",
    re.M,
)


def command(job: ToolJob) -> list[str]:
    """The command line of reads. YCSB counts a miss as a success."""
    load = job.load
    settings = {
        "operationcount": load.expected_ops if job.rate else 100_000_000,
        "maxexecutiontime": job.seconds,
        "readproportion": 1,
        "updateproportion": 0,
        "requestdistribution": "uniform",
        "measurementtype": "hdrhistogram",
        "hdrhistogram.percentiles": _PERCENTS,
        "measurement.interval": "both",
    }
    words = _command(job, "run", load.callers, settings)
    return [*words, "-target", str(job.rate)] if job.rate else words


def fill(job: ToolJob) -> list[str]:
    """The command line that stores each key once."""
    return _command(job, "load", 1, {})


def _command(job: ToolJob, phase: str, threads: int, more: dict[str, int | str]) -> list[str]:
    settings = {
        "workload": "site.ycsb.workloads.CoreWorkload",
        "memcached.hosts": job.server,
        "recordcount": job.load.keys,
        "fieldcount": 1,
        "fieldlength": max(1, job.load.value_bytes - _JSON_BYTES),
        **more,
    }
    words = [job.program, phase, "memcached", "-s", "-threads", str(threads)]
    return [
        *words,
        *(word for name, value in settings.items() for word in ("-p", f"{name}={value}")),
    ]


def read(job: ToolJob, output: str) -> ToolResult:
    """The percentiles; in an open loop those since the intended start. Raises TrialError."""
    wanted = "Intended-" if job.rate else ""
    reported = {
        100.0 if most else float(percent): float(value) / 1e3
        for intended, percent, most, value in _TIMES.findall(output)
        if intended == wanted
    }
    if not reported:
        raise unreadable("YCSB", output)
    return ToolResult(percentiles_ms=reported)


TOOL = Tool(
    name="YCSB",
    programs=("ycsb", "ycsb.sh"),
    home="https://github.com/brianfrankcooper/YCSB",
    tried="0.18.0-SNAPSHOT, commit d9faaac",
    schedules=("closed", "uniform"),
    verifies="nothing: a miss is a success",
    fill=fill,
    command=command,
    read=read,
)
