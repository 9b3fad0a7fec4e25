"""Verbs of the command line as child processes: what they print becomes part of a page."""

from __future__ import annotations

import subprocess
import sys

from cachemark.model.errors import UsageError

_PREFIX = "cachemark: "


def verb_output(*arguments: str, statuses: tuple[int, ...] = (0,), timeout_s: float) -> str:
    """What `cachemark` prints on stdout. Raises UsageError with its message if it fails."""
    command = [sys.executable, "-m", "cachemark", *arguments]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"cachemark {arguments[0]} took more than {timeout_s:g} s") from error
    if ended.returncode not in statuses:
        said = ended.stderr.strip().removeprefix(_PREFIX)
        text, _, remedy = said.partition("\n")
        raise UsageError(text or f"status {ended.returncode}", remedy.strip())
    return ended.stdout
