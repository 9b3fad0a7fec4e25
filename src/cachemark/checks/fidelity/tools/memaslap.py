"""memaslap (Debian: memcaslap): times in powers of two of µs."""

import re

from cachemark.checks.fidelity.tools.tool import KEY_BYTES, Tool, ToolJob, ToolResult, unreadable

_MIX = "key\n{key} {key} 1\nvalue\n{size} {size} 1\ncmd\n0 0.1\n1 0.9\n"
_GETS = re.compile(r"^Get Statistics \((\d+) events\)\n(.*?)(?:\n\n|\Z)", re.M | re.S)
_MAX = re.compile(r"Max:\s+(\d+)")
_ROW = re.compile(r"^\s+(\d+):((?:\s+\d+)+)$", re.M)
_PERCENTS = [p / 2 for p in range(1, 200)]


def command(job: ToolJob) -> list[str]:
    """One tenth of the operations are sets, because memaslap only gets what it has set.

    There is no open loop: --tps is in thousands per second, more than any case needs.
    """
    load = job.load
    mix = job.folder / "memaslap.cnf"
    mix.write_text(_MIX.format(key=KEY_BYTES, size=load.value_bytes), encoding="ascii")
    # Each connection has keys of its own, in steps of 1,024.
    window = max(1, round(load.keys / load.callers / 1024))
    words = [job.program, "-s", job.server, "-T", "1", "-c", str(load.callers), "-w", f"{window}k"]
    return [*words, "-t", f"{job.seconds}s", "-S", "1s", "-F", str(mix)]


def read(_job: ToolJob, output: str) -> ToolResult:
    """Take the upper end of each percentile's bucket. Raises TrialError."""
    gets = _GETS.search(output)
    most = gets and _MAX.search(gets[2])
    if not gets or not most:
        raise unreadable("memaslap", output)
    # "4: a b c d" are the counts of 8 to 16 µs, 16 to 32 µs …
    counts: dict[int, int] = {}
    for first, row in _ROW.findall(gets[2]):
        for step, count in enumerate(row.split()):
            counts[int(first) + step] = int(count)
    total = sum(counts.values())
    if not total:
        raise unreadable("memaslap", output)
    longest_ms = int(most[1]) / 1e3
    reported = {p: min(_upper_ms(counts, p / 100 * total), longest_ms) for p in _PERCENTS}
    return ToolResult(percentiles_ms={**reported, 100: longest_ms})


def _upper_ms(counts: dict[int, int], rank: float) -> float:
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            return 2**bucket / 1e3
    return 0.0


TOOL = Tool(
    name="memaslap",
    programs=("memaslap", "memcaslap"),
    home="https://github.com/awesomized/libmemcached",
    tried="1.1.4",
    package="libmemcached-tools",
    note="buckets of a factor of two",
    verifies="hit or miss, length",
    command=command,
    read=read,
)
