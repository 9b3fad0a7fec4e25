"""A folder of the installed package, copied to where its user may write.

Workers are built inside their folder. An installed package may belong to somebody else, and what is
built there would stay behind when the package goes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from cachemark.host.user_cache import user_cache

_HASH_CHARACTERS = 16
# What an installer adds to the files of a package.
_BYTECODE = "__pycache__"


def user_copy(source: Path, name: str) -> Path:
    """The copy of `source` in the user's cache; made if it is not there.

    Its path has a hash of all files: another version of the package has a copy of its own.
    Raises OSError.
    """
    copy = user_cache() / name / _hash(source)
    if not copy.is_dir():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=copy.parent, prefix=".new-") as folder:
            fresh = Path(folder) / name
            shutil.copytree(source, fresh, ignore=shutil.ignore_patterns(_BYTECODE))
            _make_writable(fresh)
            _publish(fresh, copy)
    return copy


def _make_writable(folder: Path) -> None:
    """Let the owner write everything: the package's own files may be read-only."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def _publish(fresh: Path, copy: Path) -> None:
    """Give the copy its name in one step; another process may have been quicker."""
    try:
        fresh.rename(copy)
    except OSError:
        if not copy.is_dir():
            raise


def _hash(source: Path) -> str:
    """A hash of the names, contents and permissions to execute of all files."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.is_file() and _BYTECODE not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            name = path.relative_to(source).as_posix()
            digest.update(f"{content} {os.access(path, os.X_OK)} {name}\n".encode())
    return digest.hexdigest()[:_HASH_CHARACTERS]
