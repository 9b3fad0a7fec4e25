"""Exact and sampled LRU curves of one file, by `predict` and by libCacheSim, in turns on one core.

Rates are requests for a second of CPU time, so that a busy machine does not matter much.

    python benchmarks/miss_ratio_race.py TRACE --cachesim FOLDER [--memory 64m..1g] [--rounds 5]

TRACE is in libCacheSim's format oracleGeneral, FOLDER has its programs cachesim and mrcProfiler.
Both read the whole file. libCacheSim charges a value's bytes, `predict` memcached's chunk.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
from pathlib import Path

from cachemark.host.process import binary_path

# A line of cachesim, and a row of mrcProfiler.
_RATIO = re.compile(r"req, miss ratio ([0-9.]+)|^[0-9]+B\t([0-9.]+)", re.MULTILINE)


def _own(trace: Path, memory: str, sample: str) -> list[str]:
    options = ["--trace-format=oracleGeneral", "--policies=lru", f"--sample={sample}"]
    options += ["--warm-up=0", f"--memory={memory}"]
    return [binary_path(), "trace", "predict", *options, "--", str(trace)]


def _timed(command: list[str], cpu: str) -> tuple[float, str]:
    """CPU time of a command in seconds, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        ["taskset", "-c", cpu, *command], check=True, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, ran.stdout + ran.stderr


def main() -> None:
    """Play all in turns, and print requests a second and the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--cachesim", type=Path, required=True)
    parser.add_argument("--memory", default="64m..1g")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", default="0")
    typed = parser.parse_args()
    begun = json.loads(_timed(_own(typed.trace, typed.memory, "1/100"), typed.cpu)[1])
    points = begun["prediction"]["curves"][0]["points"]
    sizes = ",".join(f"{point['memory_bytes'] >> 20}MB" for point in points)
    file = [str(typed.trace), "oracleGeneral"]
    exact = [str(typed.cachesim / "cachesim"), *file, "lru", sizes, "--num-thread=1"]
    shards = [str(typed.cachesim / "mrcProfiler"), *file, "--algo=LRU", "--profiler=SHARDS"]
    shards += ["--profiler-params=FIX_RATE,0.01,42", f"--size={sizes}"]
    players = {
        "exact, cachemark": _own(typed.trace, typed.memory, "all"),
        "exact, libCacheSim": exact,
        "1/100, cachemark": _own(typed.trace, typed.memory, "1/100"),
        "1/100, libCacheSim": shards,
    }
    times: dict[str, list[float]] = {name: [] for name in players}
    told: dict[str, str] = {}
    for _ in range(typed.rounds):
        for name, command in players.items():
            elapsed_s, told[name] = _timed(command, typed.cpu)
            times[name].append(elapsed_s)
    requests = begun["prediction"]["requests"]
    for name, all_s in times.items():
        print(
            f"{name}: {requests / statistics.median(all_s) / 1e6:.1f} M requests for a CPU second"
        )
    for kind in ("exact", "1/100"):
        pairs = zip(times[f"{kind}, libCacheSim"], times[f"{kind}, cachemark"], strict=True)
        ratios = sorted(theirs / own for theirs, own in pairs)
        low, middle, high = ratios[0], statistics.median(ratios), ratios[-1]
        print(f"{kind}: cachemark is {middle:.2f} times as fast ({low:.2f}–{high:.2f})")
    for name, text in told.items():
        print(name, _curve(text))


def _curve(text: str) -> list[float]:
    if text.startswith("{"):
        points = json.loads(text)["prediction"]["curves"][0]["points"]
        return [round(point["misses"]["value"], 4) for point in points]
    return [float(exact or sampled) for exact, sampled in _RATIO.findall(text)]


if __name__ == "__main__":
    main()
