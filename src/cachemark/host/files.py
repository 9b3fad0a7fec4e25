"""Small files of /proc and /sys, and files of a store.

Containers hide some files of /proc and /sys, so a missing file is no error. A store from a stranger
may have anything in the place of a file: this opens only regular files.
"""

import errno
import os
import stat
from pathlib import Path
from typing import IO

# Without O_NONBLOCK, opening a named pipe could take for ever.
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_LINK = "a symbolic link, which is not followed"


def read(path: Path) -> str:
    """The text of a small file, stripped; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def field(text: str, name: str, separator: str) -> str:
    """The value on the first line `name<separator>value`; empty if there is none."""
    for line in text.splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    return ""


def kib_field(text: str, name: str) -> int | None:
    """A field such as `MemTotal:  1024 kB`, in bytes; None if there is none."""
    words = field(text, name, ":").split()
    return int(words[0]) * 1024 if words and words[0].isdecimal() else None


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False for a name that is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def open_regular(path: Path, *, follow: bool = False) -> IO[bytes]:
    """Open a regular file for reading. Raises OSError, also for a folder, a pipe or a device.

    A symbolic link is followed only on request: for a file that the user named.
    """
    return os.fdopen(_regular(path, os.O_RDONLY, follow=follow), "rb")


def open_to_append(path: Path) -> IO[bytes]:
    """Open or make a regular file to read and append; follows no symbolic link. Raises OSError."""
    return os.fdopen(_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "a+b")


def read_regular(path: Path) -> bytes:
    """The content of a regular file. Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def refuse_linked(folder: Path) -> None:
    """Raise OSError if a folder is a symbolic link: it can lead to files that are not public."""
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
