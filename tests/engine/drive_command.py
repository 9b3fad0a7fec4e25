"""Runs `cachemark-engine drive` for tests, also on a busy machine."""

from __future__ import annotations

import subprocess

from cachemark.host.process import binary_path

# A busy machine may let a short window pass before any operation begins.
NOTHING_PLAYED = "no operation began in the window"
MAX_WINDOWS = 10


def drive(*words: str) -> subprocess.CompletedProcess[str]:
    """Run it with these arguments, again if nothing was played."""
    command = [binary_path(), "drive", *words]
    for _ in range(MAX_WINDOWS):
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if NOTHING_PLAYED not in ended.stderr:
            break
    return ended
