"""Runs `cachemark-engine drive` for tests, also on a busy machine."""

import subprocess

from cachemark.host.process import binary_path

# A busy machine may let a short window pass before any operation begins: each try is twice as long.
NOTHING_PLAYED = "no operation began in the window"
MAX_WINDOWS = 10
_TIMEOUT_S = 300


def drive(*words: str) -> subprocess.CompletedProcess[str]:
    """Run it with these arguments, again if nothing was played in their `--duration`, in ms."""
    command = [str(binary_path()), "drive", *words]
    for _ in range(MAX_WINDOWS):
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if NOTHING_PLAYED not in ended.stderr:
            break
        at = command.index("--duration") + 1
        command[at] = f"{2 * int(command[at].removesuffix('ms'))}ms"
    return ended
