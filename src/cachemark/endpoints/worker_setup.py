"""Setting workers up: each folder of workers has a program `setup` that builds what it needs.

It works inside its own folder, says what it does on stdout, and exits with 3, after one line on
stderr, where a toolchain is missing.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import msgspec

from cachemark.endpoints.clients import read_worker_file
from cachemark.model.errors import UsageError

State = Literal["ready", "missing", "failed"]

_MISSING_STATUS = 3
_LOG_LINES = 12


class Workshop(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of workers: its language's name, and what it declares.

    `problem` is why its `worker.toml` cannot be read; then it declares nothing.
    """

    folder: Path
    packages: list[str] = []
    problem: str = ""

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
    known = {path.parent.name: _workshop(path.parent) for path in sorted(folder.glob("*/setup"))}
    for name in names:
        if name not in known:
            raise UsageError(f"no workers in {name!r}", f"known: {', '.join(known)}")
    return [shop for name, shop in known.items() if not names or name in names]


def _workshop(folder: Path) -> Workshop:
    try:
        declared = read_worker_file(folder / "worker.toml")
    except UsageError as error:
        return Workshop(folder=folder, problem=error.text)
    return Workshop(folder=folder, packages=declared.packages)


def install_packages(packages: list[str]) -> None:
    """Install Debian packages, through sudo if not root. Raises UsageError."""
    if shutil.which("apt-get") is None:
        raise UsageError("there is no apt-get", f"install by hand: {' '.join(packages)}")
    _update_package_lists()
    _apt_get("install", "-y", "-qq", "--no-install-recommends", *packages)


def build(shop: Workshop) -> Built:
    """Run a folder's own set-up."""
    if shop.problem:
        return Built(name=shop.name, state="failed", text=shop.problem)
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
        said = ended.stdout.strip().removeprefix(f"{shop.name}: ")
        return Built(name=shop.name, state="ready", text=said.replace("\n", "; "))
    said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-_LOG_LINES:]
    state = "missing" if ended.returncode == _MISSING_STATUS else "failed"
    return Built(name=shop.name, state=state, text="\n".join(said))


@functools.cache
def _update_package_lists() -> None:
    _apt_get("update", "-qq")


def _apt_get(*words: str) -> None:
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    command = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *words]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode:
        raise UsageError(f"{' '.join(command)} failed", "see its message above")
