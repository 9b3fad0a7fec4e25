"""Runs the program `setup` of each folder in `workers/`, which builds what the workers need.

`setup` works inside its own folder and prints what it does on stdout. If a toolchain is missing, it
prints one line on stderr and exits with status 3.
"""

import functools
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

import msgspec

from cachemark.endpoints.clients import read_worker_file
from cachemark.host.shipped_folders import shipped_folder
from cachemark.model.errors import UsageError

SetupState = Literal["ready", "missing", "failed"]

_MISSING_STATUS = 3
_LOG_LINES = 12
_SOURCES = "CACHEMARK_ENGINE_SOURCES"


class WorkerFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of workers, and the Debian packages that its `worker.toml` names.

    `problem` is why the `worker.toml` cannot be read; `packages` is then empty.
    """

    folder: Path
    packages: list[str] = []
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of the folder, which is the language."""
        return self.folder.name


class SetupResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a `setup`, which took `elapsed_s`. `text` is the end of its output."""

    folder: WorkerFolder
    state: SetupState
    text: str
    elapsed_s: float = 0.0


def worker_folders(folder: Path, names: tuple[str, ...]) -> list[WorkerFolder]:
    """The folders that have a `setup`: all, or those in `names`. Raises UsageError."""
    known = {
        path.parent.name: _worker_folder(path.parent) for path in sorted(folder.glob("*/setup"))
    }
    for name in names:
        if name not in known:
            raise UsageError(f"no workers in {name!r}", f"known: {', '.join(known)}")
    return [shop for name, shop in known.items() if not names or name in names]


def _worker_folder(folder: Path) -> WorkerFolder:
    try:
        declared = read_worker_file(folder / "worker.toml")
    except UsageError as error:
        return WorkerFolder(folder=folder, problem=error.text)
    return WorkerFolder(folder=folder, packages=declared.packages)


def install_packages(packages: list[str]) -> None:
    """Install Debian packages, through sudo if not root. Raises UsageError."""
    if shutil.which("apt-get") is None:
        raise UsageError("there is no apt-get", f"install by hand: {' '.join(packages)}")
    _update_package_lists()
    _apt_get("install", "-y", "-qq", "--no-install-recommends", *packages)


def build_all(folders: Sequence[WorkerFolder]) -> Iterator[SetupResult]:
    """Run the `setup` of each folder, several at once, since they download most of the time.

    Yields each result as soon as it is there.
    """
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 1)) as pool:
        pending = [pool.submit(build, folder) for folder in folders]
        for done in as_completed(pending):
            yield done.result()


def build(folder: WorkerFolder) -> SetupResult:
    """Run the `setup` of a folder."""
    if folder.problem:
        return SetupResult(folder=folder, state="failed", text=folder.problem)
    began = time.monotonic()
    ended = subprocess.run(
        [str(folder.folder / "setup")],
        cwd=folder.folder,
        env={
            **os.environ,
            # In a Python environment, `pip install uv` puts uv beside its other programs.
            "PATH": f"{os.environ.get('PATH', os.defpath)}:{sysconfig.get_path('scripts')}",
            _SOURCES: str(shipped_folder("engine", _SOURCES)),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    state, text = _result(ended, folder.name)
    return SetupResult(folder=folder, state=state, text=text, elapsed_s=time.monotonic() - began)


def _result(ended: subprocess.CompletedProcess[str], name: str) -> tuple[SetupState, str]:
    if ended.returncode == 0:
        return "ready", ended.stdout.strip().removeprefix(f"{name}: ").replace("\n", "; ")
    output = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-_LOG_LINES:]
    return "missing" if ended.returncode == _MISSING_STATUS else "failed", "\n".join(output)


@functools.cache
def _update_package_lists() -> None:
    _apt_get("update", "-qq")


def _apt_get(*words: str) -> None:
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    # Wait for other programs that install, such as Debian's own upgrades.
    wait = ["-o", "DPkg::Lock::Timeout=600"]
    command = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *words, *wait]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode:
        raise UsageError(f"{' '.join(command)} failed", "see its message above")
