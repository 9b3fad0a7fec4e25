"""Files of a store, for reading. Whoever made the store may have put anything in their place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

# To open a named pipe can take for ever.
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_LINK = "a symbolic link, which is not followed"


def open_regular(path: Path, *, follow: bool = False) -> IO[bytes]:
    """Open a regular file for reading. Raises OSError, also for a folder, a pipe or a device.

    A symbolic link is followed only on request: for a file that the user named.
    """
    return os.fdopen(_regular(path, os.O_RDONLY, follow=follow), "rb")


def open_to_append(path: Path) -> IO[bytes]:
    """Open a regular file, which is made if need be, for reading and appending.

    A symbolic link is not followed. Raises OSError.
    """
    return os.fdopen(_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "a+b")


def read_regular(path: Path) -> bytes:
    """The content of a regular file. Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def refuse_linked(folder: Path) -> None:
    """Raise OSError if a folder is a symbolic link: it can lead to what others may not read."""
    if folder.is_symlink():
        raise OSError(errno.ELOOP, _LINK, str(folder))


def _regular(path: Path, flags: int, *, follow: bool = False) -> int:
    try:
        handle = os.open(path, flags | _FLAGS | (0 if follow else os.O_NOFOLLOW), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, _LINK, str(path)) from error
        raise
    # Some devices have no end.
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", str(path))
