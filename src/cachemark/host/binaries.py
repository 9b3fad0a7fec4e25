"""Which programs ran: the hash of each file that a process was started from.

Versions are what programs say of themselves; two builds of one version may say the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from cachemark.model.outcome import Binary


def binaries(role: str, pids: Sequence[int], root: Path = Path("/")) -> list[Binary]:
    """The program of each process, each once; none of a process that does not let us look."""
    found: dict[str, Binary] = {}
    for pid in pids:
        link = root / f"proc/{pid}/exe"
        try:
            path = str(link.readlink())
        except OSError:
            continue
        # By its link, which is the file that runs even where another took its place on the disk.
        binary = of_file(role, link, path)
        if binary is not None:
            found[binary.sha256] = binary
    return list(found.values())


def of_command(role: str, command: Sequence[str]) -> list[Binary]:
    """The files that an interpreter is given: a worker's script, a JVM's archives."""
    paths = [Path(part) for word in command[1:] for part in word.split(os.pathsep)]
    found = [of_file(role, path, str(path)) for path in paths if path.is_file()]
    return [binary for binary in found if binary is not None]


def of_file(role: str, file: Path, name: str) -> Binary | None:
    """One file under the name by which it is told; None where it cannot be read."""
    try:
        stat = file.stat()
        sha256 = _sha256(file, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    except OSError:
        return None
    return Binary(role=role, path=name, sha256=sha256)


@lru_cache(maxsize=256)  # the same few in each of a run's trials; a file that changed is another
def _sha256(file: Path, _identity: tuple[int, ...]) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
