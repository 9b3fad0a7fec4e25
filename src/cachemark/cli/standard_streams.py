"""Standard streams that are closed, full, or cannot show every character: never a traceback.

Messages on stderr report progress and failures. If they cannot be written, the work goes on.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# The modes in which a missing stdin, stdout or stderr is opened. Stdout is opened for reading, so
# that every writer notices that it was closed. Messages for a closed stderr are lost.
_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


class _Lossy(io.FileIO):
    """A file that drops what cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def prepare() -> None:
    """Open the streams that the caller closed; `?` replaces characters that the encoding lacks.

    Otherwise the next file that is opened would become stdin, stdout or stderr.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number is this one
    # Python has None for a stream that was closed at its start.
    sys.stdout = cast("TextIO | None", sys.stdout) or os.fdopen(1, "w", closefd=False)
    if sys.stderr is sys.__stderr__:  # a test may have put its own stream there
        sys.stderr = _lossy(cast("TextIO | None", sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _lossy(stderr: TextIO | None) -> TextIO:
    """A stderr that never fails, with the same encoding. `stderr` is None if it was closed."""
    encoding = stderr.encoding if stderr else None
    buffer = io.BufferedWriter(_Lossy(2, "w", closefd=False))
    return io.TextIOWrapper(buffer, encoding=encoding, line_buffering=True)


def flush() -> None:
    """Write what is buffered. Raises OSError."""
    sys.stdout.flush()


def discard() -> None:
    """Drop what cannot be written: Python would try again when it exits, and complain."""
    try:
        if sys.stdout.fileno() != 1:
            return
    except OSError:
        return  # a test has put its own stream there
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.close(null)
            sys.stdout.flush()
