"""Files that are written completely or not at all, and never in place of a device or a pipe."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_NEW_FILE_MODE = 0o666


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file of its own, or give an existing one this content. Raises OSError.

    A regular file is replaced in one step, after all is on disk. What is no regular file (a device,
    a named pipe) stays what it is: the content is written into it. A symbolic link stays, too.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    # Of links in a circle Path.resolve raises RuntimeError.
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("wb") as file:
            file.write(data)
        return
    _replace(target, data, _permissions() if mode is None else stat.S_IMODE(mode))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _permissions() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return _NEW_FILE_MODE & ~mask


def _replace(target: Path, data: bytes, permissions: int) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), permissions)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
