"""The programs of the original benchmarks: cloned at a pinned commit, and built, on demand.

Each is a row of originals.toml. A clone gets its folder's name when it is built, so an interrupted
set-up leaves nothing that looks ready.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import msgspec

from cachemark.host.user_cache import user_cache
from cachemark.model.errors import UsageError

_FOLDER = Path(__file__).parent
_LOG_LINES = 5


class Original(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the table. The head of the file explains the fields."""

    name: str
    repository: str
    commit: str
    about: str
    needs: dict[str, str]
    build: str
    product: str

    @property
    def clone(self) -> Path:
        """The folder of the clone, whether it is there or not."""
        return user_cache() / "originals" / f"{self.name}-{self.commit[:12]}"

    @property
    def path(self) -> Path:
        """The file that is there when it is built."""
        return self.clone / self.product

    @property
    def remedy(self) -> str:
        """What to do if it is not there."""
        return f"cachemark setup originals {self.name}"


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    original: list[Original]


@cache
def originals() -> dict[str, Original]:
    """All rows of the table by name."""
    rows = msgspec.toml.decode((_FOLDER / "originals.toml").read_bytes(), type=_Table).original
    return {row.name: row for row in rows}


def named(names: tuple[str, ...]) -> list[Original]:
    """The originals of these names; all if there are none. Raises UsageError."""
    known = originals()
    for name in names:
        if name not in known:
            raise UsageError(f"no original {name!r}", f"known: {', '.join(known)}")
    return [row for row in known.values() if not names or row.name in names]


def missing_packages(original: Original) -> list[str]:
    """The Debian packages of the programs that it needs and that are not here."""
    needs = {"git": "git", **original.needs}
    return list(dict.fromkeys(p for program, p in needs.items() if shutil.which(program) is None))


def set_up(original: Original) -> bool:
    """Clone and build; false if it was there already. Raises UsageError."""
    if original.path.exists():
        return False
    if packages := missing_packages(original):
        raise UsageError(
            f"{original.name} cannot be built here", f"apt-get install {' '.join(packages)}"
        )
    clone = original.clone
    unfinished = clone.with_name(f"{clone.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    clone.parent.mkdir(parents=True, exist_ok=True)
    repository = original.repository
    remedy = "connect to the network, or let git's setting url.PATH.insteadOf lead to a clone"
    _run(["git", "clone", "--quiet", repository, str(unfinished)], clone.parent, remedy)
    checkout = ["git", "checkout", "--quiet", original.commit]
    _run(checkout, unfinished, f"the repository lacks the commit that {original.name} is pinned to")
    _run(["sh", str(_FOLDER / original.build)], unfinished, f"the clone is in {unfinished}")
    if not (unfinished / original.product).is_file():
        raise UsageError(f"{original.name}: the build made no {original.product}", "report it")
    shutil.rmtree(clone, ignore_errors=True)
    unfinished.rename(clone)
    return True


def _run(command: list[str], folder: Path, remedy: str) -> None:
    ended = subprocess.run(
        command,
        cwd=folder,
        # git must not ask for a password.
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode:
        lines = (ended.stderr or ended.stdout).strip().splitlines()[-_LOG_LINES:]
        said = " / ".join(line.strip() for line in lines) or "it says nothing"
        raise UsageError(f"`{' '.join(command[:2])}` failed: {said}", remedy)
