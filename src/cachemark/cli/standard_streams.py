"""Standard streams that are closed, full, or cannot show every character: never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO, cast

# How a missing stdin, stdout or stderr is opened. Whatever writes to stdout must notice that it was
# closed, so it is opened for reading. For messages about that there is no place.
_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


def prepare() -> None:
    """Open what the caller closed, and let characters that the encoding lacks become `?`.

    Otherwise the next file that is opened would become stdin, stdout or stderr.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number is this one
    # Python has None for a stream that was closed at its start.
    sys.stdout = cast("TextIO | None", sys.stdout) or os.fdopen(1, "w", closefd=False)
    sys.stderr = cast("TextIO | None", sys.stderr) or os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def flush() -> None:
    """Write what is buffered. Raises OSError."""
    sys.stdout.flush()


def discard() -> None:
    """Drop what cannot be written: Python would try again when it exits, and complain."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream.fileno() != number:
                continue
        except OSError:
            continue  # a test has put its own stream there
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, number)
                os.close(null)
                stream.flush()
