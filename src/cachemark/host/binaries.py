"""The hash of each process's executable: it identifies the programs that ran.

A version string is not enough: two builds may report the same version.
"""

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from cachemark.model.outcome import Binary


def binaries(role: str, pids: Sequence[int], root: Path = Path("/")) -> list[Binary]:
    """The executables of the processes, without duplicates. Unreadable ones are left out."""
    by_hash: dict[str, Binary] = {}
    for pid in pids:
        link = root / f"proc/{pid}/exe"
        try:
            path = str(link.readlink())
        except OSError:
            continue
        # The link leads to the file that runs, even if another file has its path now.
        binary = of_file(role, link, path)
        if binary is not None:
            by_hash[binary.sha256] = binary
    return list(by_hash.values())


def of_command(role: str, command: Sequence[str]) -> list[Binary]:
    """The files on a command line after the program, such as a script or the jars of a JVM."""
    paths = [Path(part) for word in command[1:] for part in word.split(os.pathsep)]
    files = [of_file(role, path, str(path)) for path in paths if path.is_file()]
    return [binary for binary in files if binary is not None]


def of_file(role: str, file: Path, name: str) -> Binary | None:
    """The hash of one file, reported under `name`; None if the file cannot be read."""
    try:
        stat = file.stat()
        sha256 = _sha256(file, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    except OSError:
        return None
    return Binary(role=role, path=name, sha256=sha256)


@lru_cache(maxsize=256)  # the trials of a run use the same few files
def _sha256(file: Path, _identity: tuple[int, ...]) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
