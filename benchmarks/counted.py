"""The cost of an interval a second, in instructions as valgrind counts them.

CPU time can show a difference of 1 % only on a quiet machine. Counts of instructions do not depend
on the machine's load. A thread of its own gathers, merges and logs intervals; the playing thread
only hands them over, in one function.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from metered import FailedError, pinned
from players import CONNECTIONS, INTERVALS, SHAPE, Case, native

from cachemark.host.process import binary_path

SECONDS = 6
# Threads in the order of their start: 1 is the main thread, then gathering and playing.
GATHERING, PLAYING = 2, 3
HAND_OVER = "--toggle-collect=cachemark_load::record::intervals::Intervals::swap"


class Count(NamedTuple):
    """User-mode instructions of two threads, and the operations that were played."""

    gathering: int
    playing: int
    ops: int


def counted(case: Case, cpus: set[int], seconds: float, folder: Path) -> None:
    """Print the instructions of an interval, and as a part of a second's instructions."""
    if not shutil.which("valgrind"):
        print("left out: counted instructions: valgrind is not on PATH", file=sys.stderr)
        return
    try:
        measured = native(case, cpus, seconds)
        on = _count(case, cpus, folder / "on", INTERVALS)
        handed = _count(case, cpus, folder / "handed", INTERVALS, HAND_OVER)
        off = _count(case, cpus, folder / "off", ())
    except FailedError as error:
        print(f"left out: counted instructions: {error}", file=sys.stderr)
        return
    # Operations per second of CPU time, which does not depend on other load.
    cpu_ns = measured["cpu_user_ns"] + measured["cpu_system_ns"]
    rate = measured["operations"]["get"]["ok"] / cpu_ns * 1e9
    user = measured["cpu_user_ns"] / cpu_ns
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
    """Play a window under callgrind, which counts all or one function. Raises FailedError."""
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
