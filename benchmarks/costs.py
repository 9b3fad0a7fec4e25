"""What intervals and memory cost the native client."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

from players import CONNECTIONS, INTERVALS, SHAPE, Case, FailedError, pinned, play_native
from scipy import stats

from cachemark.host.process import binary_path

# Windows of a pair are this part of the others, and there are so many pairs for each round.
PAIR_PART, PAIRS = 0.6, 4
TAPE_OPS = 2_000_000
GOAL_MB = 50


def intervals(case: Case, cpus: set[int], rounds: int, seconds: float) -> None:
    """Print what an interval a second costs: pairs of short windows, in an order that changes.

    A window and its neighbour meet the same machine, so the ratio is that of each pair: the
    geometric mean, and Student's 95 % interval on logarithms.
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
    """Print the most memory that the client held, beside the size of its tape."""
    written = [binary_path(), "tape", "write", "--out", str(tape), "--keys", str(case.keys), *SHAPE]
    subprocess.run([*written, "--ops", str(TAPE_OPS)], check=True, capture_output=True)
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth), "--no-prefill"]
    times = ["--warmup", "100ms", "--duration", "500ms", "--quiet", "--json", *INTERVALS]
    drive = [binary_path(), "drive", "--server", case.address, "--tape", str(tape), *load, *times]
    # The most of all children would be that of another: it is asked of this one, by its parent.
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
        f"memory at most {peak_mb:.1f} MB: {over_mb:.1f} over the tape's {tape_mb:.1f} "
        f"(the goal is below {GOAL_MB} over it)"
    )
