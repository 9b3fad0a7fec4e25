"""Setting workers up: each folder of workers has a program `setup` that builds what it needs.

It works inside its own folder, says what it does on stdout, and exits with 3, after one line on
stderr, where a toolchain is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import msgspec

from cachemark.clients import WorkerFile, read_worker_file
from cachemark.errors import UsageError

State = Literal["ready", "missing", "failed"]

_MISSING_STATUS = 3
_LOG_LINES = 12


class Workshop(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of workers: its language's name, and what it declares."""

    folder: Path
    declared: WorkerFile

    @property
    def name(self) -> str:
        """The language, as the folder is called."""
        return self.folder.name


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What came of setting one up; `text` is what it said last."""

    name: str
    state: State
    text: str


def workshops(folder: Path, names: tuple[str, ...]) -> list[Workshop]:
    """Those with something to set up, all or the named ones. Raises UsageError."""
    known = {
        path.parent.name: Workshop(
            folder=path.parent, declared=read_worker_file(path.parent / "worker.toml")
        )
        for path in sorted(folder.glob("*/setup"))
    }
    for name in names:
        if name not in known:
            raise UsageError(f"no workers in {name!r}", f"known: {', '.join(known)}")
    return [shop for name, shop in known.items() if not names or name in names]


def missing_packages(shops: list[Workshop]) -> list[str]:
    """Debian packages that they ask for and that are not installed."""
    wanted = sorted({package for shop in shops for package in shop.declared.packages})
    return [package for package in wanted if not _installed(package)]


def install_packages(packages: list[str]) -> None:
    """Install Debian packages, through sudo if not root. Raises UsageError."""
    if shutil.which("apt-get") is None:
        raise UsageError("there is no apt-get", f"install by hand: {' '.join(packages)}")
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    quiet = ["-y", "-qq", "--no-install-recommends"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", *quiet, *packages]):
        command = [*as_root, "apt-get", *words]
        ended = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, check=False
        )  # fmt: skip
        if ended.returncode:
            raise UsageError(f"{' '.join(command)} failed", "see its message above")


def build(shop: Workshop) -> Built:
    """Run a folder's own set-up."""
    ended = subprocess.run(
        [str(shop.folder / "setup")],
        cwd=shop.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode == 0:
        return Built(name=shop.name, state="ready", text=ended.stdout.strip().replace("\n", "; "))
    said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-_LOG_LINES:]
    state = "missing" if ended.returncode == _MISSING_STATUS else "failed"
    return Built(name=shop.name, state=state, text="\n".join(said))


def _installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return True
    ended = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stdout.strip() == "installed"
