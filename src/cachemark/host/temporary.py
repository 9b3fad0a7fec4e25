"""Temporary folders that a later process removes if their own was killed.

The process holds a lock in each of its folders. A killed process leaves its folders behind, but the
kernel releases their locks, so the next process finds the folders and removes them.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "cachemark-"
_LOCK = ".lock"
# The kernel allows 108 bytes for a socket's path, with the zero at its end.
_SOCKET_PATH_MAX_BYTES = 107
_RANDOM_CHARACTERS = 8  # of mkdtemp's names


@contextmanager
def temporary_folder(inside: Path | None = None) -> Generator[Path]:
    """A new folder, below the system's temporary folder or `inside`; the end removes it."""
    root = inside or Path(tempfile.gettempdir())
    _remove_abandoned(root)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    lock = _lock_new(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def temporary_socket() -> Generator[Path]:
    """The path of a socket that does not exist yet, in a temporary folder of its own.

    The folder is below /tmp if a path below the system's temporary folder would be too long.
    """
    name = "socket"
    below = len(f"/{_PREFIX}{'x' * _RANDOM_CHARACTERS}/{name}")
    root = tempfile.gettempdir()
    fits = len(os.fsencode(root)) + below <= _SOCKET_PATH_MAX_BYTES
    with temporary_folder(Path(root if fits else "/tmp")) as folder:
        yield folder / name


def _lock_new(folder: Path) -> int:
    """Lock the folder. The file gets its name once locked, so no other process can be earlier."""
    unnamed = folder / f"{_LOCK}.new"
    lock = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(folder / _LOCK)
    return lock


def _remove_abandoned(root: Path) -> None:
    """Remove this user's folders whose process has ended."""
    with contextlib.suppress(OSError):
        for folder in root.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_own_folder(folder) and _is_abandoned(folder / _LOCK):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_own_folder(folder: Path) -> bool:
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _is_abandoned(path: Path) -> bool:
    """Whether the lock is free. Raises OSError if there is no lock, or a process holds it."""
    lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(lock)
    return True
