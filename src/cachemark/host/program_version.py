"""The text of `cachemark --version`: version, commit, whether it runs from a checkout, and Python.

A package comes from an export of the sources, whose commit is in commit.txt. In a checkout that
file has a placeholder, and this module reads git's files, since the program git may be missing.
"""

import platform
from pathlib import Path

from cachemark import __version__

_PACKAGE = Path(__file__).resolve().parents[1]
_HASH_CHARACTERS = 12


def version_text() -> str:
    """Such as `cachemark 0.1.0 (0123456789ab, checkout; Python 3.11.2)`."""
    exported = (_PACKAGE / "commit.txt").read_text(encoding="utf-8").strip()
    if not exported.startswith("$"):
        return _text(exported, "package")
    checkout = _PACKAGE.parents[1]
    inside = (checkout / "pyproject.toml").is_file()
    return _text(checkout_commit(checkout), "checkout" if inside else "package")


def _text(commit: str, origin: str) -> str:
    shown = commit[:_HASH_CHARACTERS] or "commit unknown"
    return f"cachemark {__version__} ({shown}, {origin}; Python {platform.python_version()})"


def checkout_commit(checkout: Path) -> str:
    """The commit of a checkout or of a worktree of git; empty if it cannot be found."""
    try:
        folder = _git_folder(checkout)
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        return _commit_of(head.removeprefix("ref: "), _common_folder(folder))
    except OSError:
        return ""


def _git_folder(checkout: Path) -> Path:
    """`.git`, or the folder that the file `.git` of a worktree names."""
    dot_git = checkout / ".git"
    if dot_git.is_dir():
        return dot_git
    return checkout / dot_git.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")


def _common_folder(folder: Path) -> Path:
    """The folder of the branches, which all worktrees share."""
    named = folder / "commondir"
    return folder / named.read_text(encoding="utf-8").strip() if named.is_file() else folder


def _commit_of(branch: str, folder: Path) -> str:
    if (folder / branch).is_file():
        return (folder / branch).read_text(encoding="utf-8").strip()
    for line in (folder / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, name = line.partition(" ")
        if name == branch:
            return commit
    return ""
