"""Folders that ship beside the Python code: workers, conformance cases, the engine's sources."""

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from cachemark.model.errors import UsageError

_HASH_CHARACTERS = 16
# The files that an installer adds to the files of a package.
_BYTECODE = "__pycache__"
_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_folder(name: str, variable: str) -> Path:
    """Return the folder `name`.

    The environment's `variable` comes first, then the checkout, then the installed package's data.
    Raises UsageError if there is no such folder.
    """
    named = os.environ.get(variable)
    candidates = [Path(named)] if named else [_PACKAGE.parents[1] / name, _PACKAGE / f"_{name}"]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise UsageError(
        f"no folder {name} at {candidates[0]}", f"set {variable} to the folder `{name}`"
    )


def writable_folder(name: str, variable: str) -> Path:
    """Return the folder `name`, or the user's copy of an installed package's folder.

    Raises UsageError or OSError.
    """
    folder = shipped_folder(name, variable)
    return user_copy(folder, name) if folder == _PACKAGE / f"_{name}" else folder


def user_copy(source: Path, name: str) -> Path:
    """The copy of `source` in the user's cache, which the user may write; makes it if missing.

    A set-up builds workers inside their folder. Its path has a hash of all files, so each version
    of the package has its own copy. Raises OSError.
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
    """Let the owner write everything, since the package's own files may be read-only."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def _publish(fresh: Path, copy: Path) -> None:
    """Give the copy its name in one step, unless another process was quicker."""
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


def user_cache() -> Path:
    """`$XDG_CACHE_HOME/cachemark`, or `~/.cache/cachemark`; it may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cachemark"
