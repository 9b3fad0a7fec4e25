"""Writes files completely or not at all, and never replaces a device or a pipe."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cachemark.host.files import open_to_append

_NEW_FILE_MODE = 0o666


@contextmanager
def made_folder(folder: Path, mode: int = 0o777) -> Generator[None]:
    """Make a folder with its parents; if the context fails, remove the new ones. Raises OSError."""
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        yield
    except BaseException:
        for path in missing:
            with contextlib.suppress(OSError):  # it is not empty, or was not made
                path.rmdir()
        raise


def write_files(
    folder: Path, contents: Mapping[str, bytes | str], permissions: int | None = None
) -> None:
    """Write files into a folder. If one fails, the new files are removed.

    New files get `permissions`, as in `write_file`. Raises OSError.
    """
    made: list[Path] = []
    with made_folder(folder):
        try:
            for name, content in contents.items():
                path = folder / name
                is_new = not os.path.lexists(path)
                write_file(path, content, permissions)
                if is_new:
                    made.append(path)
        except BaseException:
            for path in made:
                path.unlink(missing_ok=True)
            raise


def append_lines(path: Path, lines: bytes) -> None:
    """Append whole lines, which are on disk when this returns; after a failure, none of them.

    Removes an earlier writer's last line if it has no end. Follows no symbolic link. Raises
    OSError.
    """
    is_new = not os.path.lexists(path)
    with open_to_append(path) as file:
        before = _whole_lines(file)
        try:
            file.truncate(before)
            # Buffered: a raw write may write a part only, and its return value alone says so.
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), before)
            if is_new:
                path.unlink(missing_ok=True)
            raise


def _whole_lines(file: IO[bytes]) -> int:
    """The number of a file's bytes up to its last line end."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - 1))
    if file.read() in (b"", b"\n"):
        return length
    file.seek(0)
    return file.read().rfind(b"\n") + 1


def replace_file(path: Path, content: bytes | str) -> None:
    """Put a new file at this path, after all of it is on disk. Raises OSError.

    Replaces anything at the path. Follows no symbolic link: neither there, nor as the folder.
    """
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "a symbolic link, which is not followed", str(path.parent))
    _replace(path, _bytes(content), _permissions())


def write_file(path: Path, content: bytes | str, permissions: int | None = None) -> None:
    """Write a new file, or give an existing one this content. Raises OSError.

    A new file has the usual permissions, or `permissions`. Replaces a regular file in one step,
    after all is on disk. Writes the content into any other file (a device, a named pipe), and into
    the target of a symbolic link.
    """
    data = _bytes(content)
    # For links in a circle Path.resolve raises RuntimeError.
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("wb") as file:
            file.write(data)
        return
    if mode is not None:
        permissions = stat.S_IMODE(mode)
    elif permissions is None:
        permissions = _permissions()
    _replace(target, data, permissions)


def _bytes(content: bytes | str) -> bytes:
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


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
