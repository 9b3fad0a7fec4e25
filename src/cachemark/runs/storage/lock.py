"""One process at a time plays a run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cachemark.model.errors import UsageError

_LOCK = "lock"


def lock_run(folder: Path) -> int:
    """Lock the run in a folder until the returned file is closed, or this process ends.

    Raises UsageError if another process plays it.
    """
    try:
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UsageError(
            f"{folder}: another process is running it", "wait for it, or stop it"
        ) from error
    return lock
