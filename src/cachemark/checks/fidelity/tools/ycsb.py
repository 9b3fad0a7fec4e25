"""YCSB's memcached binding: percentiles in µs, in an open loop from the intended start."""

from __future__ import annotations

import re

from cachemark.checks.fidelity.tools.tool import Tool, ToolJob, ToolResult, unreadable

_PERCENTS = "50,75,80,90,95,97,98,99,99.5"
_TIMES = re.compile(
    r"^\[(Intended-)?READ\], (?:([\d.]+)(?:st|nd|rd|th)?Percentile|(Max))Latency\(us\), ([\d.]+)",
    re.M,
)


def command(job: ToolJob) -> list[str]:
    """The command line. YCSB counts a miss as a success, so nothing is loaded."""
    load = job.load
    operations = load.expected_ops if job.rate else 100_000_000
    settings = {
        "workload": "site.ycsb.workloads.CoreWorkload",
        "memcached.hosts": job.server,
        "recordcount": load.keys,
        "operationcount": operations,
        "maxexecutiontime": job.seconds,
        "readproportion": 1,
        "updateproportion": 0,
        "requestdistribution": "uniform",
        "measurementtype": "hdrhistogram",
        "hdrhistogram.percentiles": _PERCENTS,
        "measurement.interval": "both",
    }
    words = [job.program, "run", "memcached", "-s", "-threads", str(load.callers)]
    words += [word for name, value in settings.items() for word in ("-p", f"{name}={value}")]
    return [*words, "-target", str(job.rate)] if job.rate else words


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
    schedules=("closed", "uniform"),
    verifies="nothing: a miss is a success",
    command=command,
    read=read,
)
