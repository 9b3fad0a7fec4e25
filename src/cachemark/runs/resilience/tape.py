"""The tape of all cells: four callers read and write all keys, and no two writes are alike."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cachemark.analysis.resilience.call_log import TapeData
from cachemark.host import process
from cachemark.model.errors import UsageError

KEYS = 1009  # a prime, so that each caller comes to each key
_RATE = 400
# Longer than any cell: where a tape begins again, its lengths come again.
_TAPE_S = 60


def write_tape(path: Path) -> TapeData:
    """Write the tape: reads in turn of all keys, and writes of other lengths. Raises UsageError."""
    command = [
        process.binary_path(), "tape", "write", "--out", str(path), "--keys", str(KEYS),
        "--distribution", "sequential", "--size", "100..1000", "--vary-lengths",
        "--mix", "get=9,set=1", "--schedule", "uniform", "--rate", str(_RATE),
        "--duration", f"{_TAPE_S}s",
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise UsageError(f"tape: {ended.stderr.strip()}")
    return TapeData(path)
