"""Runs verbs of the command line as child processes, whose output becomes part of a page."""

import subprocess
import sys
from typing import NamedTuple

from cachemark.model.errors import UsageError

_PREFIX = "cachemark: "


class Said(NamedTuple):
    """The output of a verb."""

    stdout: str
    stderr: str


def verb_command(*arguments: str) -> list[str]:
    """The command of a verb, with the Python that runs this process."""
    return [sys.executable, "-m", "cachemark", *arguments]


def run_verb(*arguments: str, statuses: tuple[int, ...] = (0,), timeout_s: float) -> Said:
    """Run `cachemark` and wait for its end. Raises UsageError with its message if it fails."""
    try:
        ended = subprocess.run(
            verb_command(*arguments),
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
        raise error_of(ended.stderr, ended.returncode)
    return Said(ended.stdout, ended.stderr)


def error_of(stderr: str, status: int) -> UsageError:
    """The error that a verb printed as the last thing before it ended."""
    _, mark, said = f"\n{stderr.strip()}".rpartition(f"\n{_PREFIX}")
    text, _, remedy = said.partition("\n") if mark else (stderr.strip(), "", "")
    return UsageError(text or f"status {status}", remedy.strip())
