"""Install the engine from a wheel in dist/ instead of building it.

A wheel fits if it was built from exactly the sources of this checkout, for this kind of processor.
Settings that would change the build need one. Exit status 0: the engine of such a wheel is
installed; 1: build it.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.engine_wheel import SOURCES, sources_hash

ROOT = Path(__file__).resolve().parent.parent
# These change what cargo builds.
_SETTINGS = re.compile(
    r"(CARGO_ENCODED_)?RUSTFLAGS|RUSTC(_.+)?|CARGO_(BUILD|PROFILE_RELEASE|TARGET)_.+"
)


def main(root: Path = ROOT) -> int:
    """Install the wheel that fits, if there is one and it can be used here."""
    if any(_SETTINGS.fullmatch(name) for name in os.environ):
        return 1
    wanted = sources_hash(root / "engine")
    wheel = fitting(root / "dist", platform.machine(), wanted)
    if wheel is None:
        return 1
    if installed(root / ".venv") == wanted:
        return 0
    print(f"setup: the engine from {wheel.relative_to(root)}, which has the same sources")
    # Without --reinstall uv keeps a package of the same version.
    command = [root / ".tools" / "bin" / "uv", "pip", "install", "--python", root / ".venv"]
    options = ["--reinstall", "--no-deps", "--quiet"]
    return min(1, subprocess.run([*command, *options, wheel], check=False).returncode)


def fitting(folder: Path, machine: str, sources: str) -> Path | None:
    """The engine's wheel for a processor that records this hash of its sources; None without."""
    for wheel in sorted(folder.glob(f"cachemark_engine-*_{machine}.whl")):
        try:
            with zipfile.ZipFile(wheel) as files:
                names = [
                    name for name in files.namelist() if name.endswith(f".dist-info/{SOURCES}")
                ]
                recorded = [files.read(name).decode().strip() for name in names]
        except zipfile.BadZipFile:
            continue
        if recorded == [sources]:
            return wheel
    return None


def installed(environment: Path) -> str | None:
    """The hash of the sources of the engine that is installed from a wheel; None if none is."""
    for file in environment.glob(
        f"lib/python*/site-packages/cachemark_engine-*.dist-info/{SOURCES}"
    ):
        return file.read_text(encoding="utf-8").strip()
    return None


if __name__ == "__main__":
    sys.exit(main())
