"""Files of a store, for reading. Whoever made the store may have put anything in their place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading. Raises OSError, also for a folder, a pipe or a device.

    To open a named pipe can take for ever, and some devices have no end.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path) -> bytes:
    """The content of a regular file. Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()
