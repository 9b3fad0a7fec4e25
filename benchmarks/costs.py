"""The cost of intervals for the native client, and the memory that the client needs."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

from metered import FailedError, pinned
from players import CONNECTIONS, INTERVALS, SHAPE, Case, play_native
from scipy import stats

from cachemark.host.process import binary_path

# The length of a paired window, as a part of other windows; and the number of pairs in a round.
PAIR_PART, PAIRS = 0.6, 4
TAPE_OPS = 2_000_000
GOAL_MB = 50


def intervals(case: Case, cpus: set[int], rounds: int, seconds: float) -> None:
    """Print what an interval a second costs, from pairs of short windows in random order.

    The two windows of a pair meet the same state of the machine, so each pair gives a ratio. The
    result is the geometric mean of the ratios, with Student's 95 % interval on logarithms.
    """
    logs: list[float] = []
    for _ in range(rounds * PAIRS):
        order = random.sample([False, True], 2)
        try:
            cost = {on: _cost(case, cpus, seconds * PAIR_PART, on=on) for on in order}
        except FailedError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        logs.append(math.log(cost[True] / cost[False]))
    if len(logs) < 2:
        print("an interval a second: too few pairs to tell")
        return
    mean, error = sum(logs) / len(logs), float(stats.sem(logs))
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * error
    low, high = math.exp(mean - half), math.exp(mean + half)
    print(
        f"\nan interval a second: {math.exp(mean):.4f} × the CPU of none, "
        f"{low:.4f} to {high:.4f} (95 %, {len(logs)} pairs)"
    )


def _cost(case: Case, cpus: set[int], seconds: float, *, on: bool) -> float:
    run = play_native(case, cpus, seconds, *(INTERVALS if on else ()))
    return run.cpu_us / run.ops


def memory(case: Case, cpus: set[int], tape: Path) -> None:
    """Print the peak memory of the client, and how much of it is the tape."""
    written = [binary_path(), "tape", "write", "--out", str(tape), "--keys", str(case.keys), *SHAPE]
    subprocess.run([*written, "--ops", str(TAPE_OPS)], check=True, capture_output=True)
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth), "--no-prefill"]
    times = ["--warmup", "100ms", "--duration", "500ms", "--quiet", "--json", *INTERVALS]
    drive = [binary_path(), "drive", "--server", case.address, "--tape", str(tape), *load, *times]
    # RUSAGE_CHILDREN has the maximum of all children, so the client gets a parent of its own.
    program = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "sys.exit(code)\n"
    )
    command = pinned(cpus, sys.executable, "-c", program, *drive)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        print(f"left out: memory: {ended.stderr.strip()}", file=sys.stderr)
        return
    peak_mb = int(ended.stdout) * 1024 / 1e6
    tape_mb = tape.stat().st_size / 1e6
    over_mb = peak_mb - tape_mb
    print(
        f"memory at most {peak_mb:.1f} MB: {over_mb:.1f} MB more than the tape's {tape_mb:.1f} MB "
        f"(the goal is below {GOAL_MB} MB more)"
    )
