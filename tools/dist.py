"""Build wheels and sdists of the last commit into dist/: of the engine, and of the rest.

All but the engine's wheel is built of an export of the commit, which knows its hash, and has the
commit's times: the same commit gives the same bytes. The engine is compiled in the checkout.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# `uv run` sets UV.
UV = os.environ.get("UV", str(ROOT / ".tools" / "bin" / "uv"))


def main() -> int:
    """Build all packages, and print their sizes."""
    changes = git("status", "--porcelain").decode()
    if changes:
        print(f"dist: these changes are in no commit:\n{changes}", file=sys.stderr)
        return 1
    out = ROOT / "dist"
    out.mkdir(exist_ok=True)
    for stale in out.iterdir():
        stale.unlink()
    with tempfile.TemporaryDirectory() as folder:
        export(Path(folder))
        build(Path(folder), "--sdist", out)
        build(Path(folder), "--wheel", out)
        build(Path(folder) / "engine", "--sdist", out)
    build(ROOT / "engine", "--wheel", out)
    for package in write_checksums(out):
        print(f"{package.stat().st_size / 1e6:6.2f} MB  {package.relative_to(ROOT)}")
    return 0


def export(folder: Path) -> None:
    """Write the sources of the last commit into a folder."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as sources:
        sources.extractall(folder, filter="data")


def build(package: Path, kind: str, out: Path) -> None:
    """Build one package, with the backend that its pyproject.toml names."""
    command = [UV, "build", kind, "--quiet", "--no-create-gitignore", "--out-dir", str(out)]
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": git("show", "--no-patch", "--format=%ct", "HEAD").decode().strip(),
        # The oldest tag of manylinux that the symbols of the program allow.
        "MATURIN_PEP517_ARGS": "--compatibility pypi",
    }
    subprocess.run([*command, str(package)], check=True, env=environment)


def write_checksums(out: Path) -> list[Path]:
    """Write SHA256SUMS, which `sha256sum --check` reads; return the packages."""
    packages = sorted(out.glob("cachemark*"))
    rows = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages]
    (out / "SHA256SUMS").write_text("".join(rows), encoding="utf-8")
    return packages


def git(*words: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
