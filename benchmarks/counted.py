"""What an interval a second costs, in instructions that are counted one by one.

Pairs of CPU measurements tell a hundredth from nothing only on a machine that is still. Counts do
not depend on it: the thread that gathers, adds up and logs intervals is one by itself, and all that
the playing thread does more is a function of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from players import CONNECTIONS, INTERVALS, SHAPE, Case, FailedError, native, pinned

from cachemark.host.process import binary_path

SECONDS = 6
# Threads in the order in which they begin: the program, who gathers intervals, who plays.
GATHERING, PLAYING = 2, 3
HAND_OVER = "--toggle-collect=cachemark_load::intervals::Intervals::exchange"


class Count(NamedTuple):
    """User-mode instructions of two threads, and what they were for."""

    gathering: int
    playing: int
    ops: int


def counted(case: Case, cpus: set[int], seconds: float, folder: Path) -> None:
    """Print an interval's instructions, and their part of those of a second of operations."""
    if not shutil.which("valgrind"):
        print("left out: counted instructions: valgrind is not on PATH", file=sys.stderr)
        return
    try:
        told = native(case, cpus, seconds, "--timeout", "10s")
        on = _count(case, cpus, folder / "on", INTERVALS)
        handed = _count(case, cpus, folder / "handed", INTERVALS, HAND_OVER)
        off = _count(case, cpus, folder / "off", ())
    except FailedError as error:
        print(f"left out: counted instructions: {error}", file=sys.stderr)
        return
    # Of a CPU that does nothing else, whatever else this one does.
    cpu_ns = told["cpu_user_ns"] + told["cpu_system_ns"]
    rate = told["operations"]["get"]["ok"] / cpu_ns * 1e9
    user = told["cpu_user_ns"] / cpu_ns
    if not handed.playing:
        print(f"left out: counted instructions: no call of {HAND_OVER}", file=sys.stderr)
        return
    of_interval = (on.gathering - off.gathering + handed.playing) / SECONDS
    of_op = off.playing / off.ops
    part = of_interval / (of_op * rate)
    print(
        f"\ncounted by valgrind, user mode, depth {case.depth}: an interval {of_interval:,.0f} "
        f"instructions ({handed.playing / SECONDS:,.0f} of the thread that plays), "
        f"an operation {of_op:,.0f}\n"
        f"at {rate:.0f} operations in a second of CPU time an interval is {part:.2%} of the user "
        f"mode's, which is {user:.0%} of the CPU time: {part * user:.2%} of that "
        "(the goal is below 1 %)"
    )


def _count(case: Case, cpus: set[int], out: Path, more: tuple[str, ...], *only: str) -> Count:
    """A window under callgrind, the whole or only a function of it. Raises FailedError."""
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth), "--quiet", "--json"]
    keys = ["--keys", str(case.keys), *SHAPE, "--no-prefill"]
    times = ["--warmup", "0s", "--duration", f"{SECONDS}s", "--timeout", "10s"]
    drive = [binary_path(), "drive", "--server", case.address, *keys, *load, *times, *more]
    tool = ["valgrind", "--tool=callgrind", "--separate-threads=yes", *only]
    command = pinned(cpus, *tool, f"--callgrind-out-file={out}", *drive)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise FailedError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}")
    return Count(
        gathering=_total(out, GATHERING),
        playing=_total(out, PLAYING),
        ops=json.loads(ended.stdout)["measure"]["operations"]["get"]["ok"],
    )


def _total(out: Path, thread: int) -> int:
    """All instructions of a thread."""
    lines = Path(f"{out}-{thread:02}").read_text().splitlines()
    (total,) = [line for line in lines if line.startswith("totals: ")]
    return int(total.split()[1])
