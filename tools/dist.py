"""Build wheels and sdists of the last commit into dist/: of the engine, and of the rest.

Everything is built from an export of the commit: the packages know its hash, and their files have
its time. The same commit gives the same bytes, with the same compilers. The engine's wheel is for
this kind of processor: `--checksums` is for a folder that also has other processors' wheels.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from tools.engine_wheel import finish, sources_hash

ROOT = Path(__file__).resolve().parent.parent
# The list of parts (SBOM) of cachemark without its engine, as CycloneDX.
PARTS = "cachemark.cyclonedx.json"
# `uv run` sets UV.
UV = os.environ.get("UV", str(ROOT / ".tools" / "bin" / "uv"))
# The engine's wheel installs where glibc is at least 2.17: on every distribution since 2014.
_COMPATIBILITY = "manylinux2014"
# The path stands in the list of the engine's parts, so it is the same for all users and settings.
SOURCES = Path("/tmp/cachemark-dist")
# These would change the program, or where cargo puts it.
_NOT_FOR_CARGO = ("CARGO_TARGET_DIR", "MAKEFLAGS", "MFLAGS", "RUSTFLAGS")


def main(arguments: list[str] | None = None) -> int:
    """Build all packages, and print their sizes; with `--again`, compare them with dist/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="build elsewhere, and compare")
    parser.add_argument("--checksums", action="store_true", help="only write SHA256SUMS")
    wanted = parser.parse_args(arguments)
    out = ROOT / "dist"
    if wanted.checksums:
        write_checksums(out)
        return 0
    changes = git("status", "--porcelain").decode()
    if changes:
        print(f"dist: these changes are in no commit:\n{changes}", file=sys.stderr)
        return 1
    if wanted.again:
        with tempfile.TemporaryDirectory() as folder:
            build_all(Path(folder))
            return _report(differences(out, Path(folder)))
    out.mkdir(exist_ok=True)
    for stale in out.iterdir():
        stale.unlink()
    for package in build_all(out):
        print(f"{package.stat().st_size / 1e6:6.2f} MB  {package.relative_to(ROOT)}")
    return 0


def differences(first: Path, second: Path) -> list[str]:
    """The files of two folders that are not the same, byte for byte. A signature is of no build."""
    names = {path.name for folder in (first, second) for path in folder.glob("*")}
    return [
        name
        for name in sorted(names - {"SHA256SUMS.asc"})
        if not (first / name).is_file()
        or not (second / name).is_file()
        or (first / name).read_bytes() != (second / name).read_bytes()
    ]


def _report(different: list[str]) -> int:
    if different:
        print(f"dist: a second build differs in: {', '.join(different)}", file=sys.stderr)
        return 1
    print("a second build gives the same bytes")
    return 0


def build_all(out: Path) -> list[Path]:
    """Build all packages of the last commit into a folder; those that have checksums."""
    with sources_folder() as sources:
        export(sources)
        shutil.copy(sources / "LICENSE", sources / "engine")
        build_site(sources)
        build(sources, "--sdist", out)
        build(sources, "--wheel", out)
        build(sources / "engine", "--sdist", out)
        build_engine(sources / "engine", out)
    write_parts(out / PARTS)
    return write_checksums(out)


@contextlib.contextmanager
def sources_folder() -> Generator[Path]:
    """The folder of the sources; it is removed at the end."""
    try:
        SOURCES.mkdir(mode=0o700)
    except FileExistsError:
        raise SystemExit(
            f"dist: {SOURCES} exists: wait for another `make dist`, or remove what one left"
        ) from None
    try:
        yield SOURCES
    finally:
        shutil.rmtree(SOURCES)


def export(folder: Path) -> None:
    """Write the sources of the last commit into a folder."""
    # Python's tarfile cannot do this in the same way in 3.11.2 (Debian 12's) and in 3.14.
    unpack = ["tar", "--extract", "--no-same-owner", "--directory", str(folder)]
    subprocess.run(unpack, input=git("archive", "HEAD"), check=True)


def build_site(sources: Path) -> None:
    """Build the documentation site of exported sources, which their packages then carry.

    The environment has what cachemark needs and the site's generator, as locked, and cachemark
    itself from these sources: they print a part of the pages.
    """
    with tempfile.TemporaryDirectory() as folder:
        python, needed = Path(folder) / "bin" / "python", Path(folder) / "needed.txt"
        groups = ["--no-default-groups", "--group", "docs", "--no-emit-workspace"]
        wanted = ["--output-file", str(needed), "--project", str(ROOT), "--locked", *groups]
        install = ["--python", str(python), "--no-deps", "--requirement", str(needed)]
        for command in (
            [UV, "venv", "--quiet", folder],
            [UV, "export", "--quiet", *wanted],
            [UV, "pip", "install", "--quiet", *install, "--editable", str(sources)],
            [python, "-m", "tools.docs_site"],
        ):
            environment = {**os.environ, **_commit_time()}
            subprocess.run(
                command, cwd=sources, env=environment, check=True, stdout=subprocess.DEVNULL
            )


def build(package: Path, kind: str, out: Path) -> None:
    """Build one package, with the backend that its pyproject.toml names."""
    command = [UV, "build", kind, "--quiet", "--no-create-gitignore", "--out-dir", str(out)]
    subprocess.run([*command, str(package)], check=True, env={**os.environ, **_commit_time()})


def build_engine(engine: Path, out: Path) -> None:
    """Build the engine's wheel. zig links it, so that it needs no newer glibc than it has to."""
    tools = [UV, "run", "--project", str(ROOT), "--locked", "--isolated", "--only-group", "release"]
    options = ["--release", "--locked", "--quiet", "--zig", "--compatibility", _COMPATIBILITY]
    environment = {name: os.environ[name] for name in os.environ if name not in _NOT_FOR_CARGO}
    # zig's linker would remove the symbols too.
    cargo = {"CARGO_ENCODED_RUSTFLAGS": _same_paths(engine), "CARGO_PROFILE_RELEASE_STRIP": "none"}
    subprocess.run(
        [*tools, "--quiet", "maturin", "build", *options, "--out", str(out)],
        cwd=engine,
        env={**environment, **_commit_time(), **cargo},
        check=True,
    )
    for wheel in out.glob("cachemark_engine-*.whl"):
        finish(wheel, sources_hash(engine))


def _same_paths(engine: Path) -> str:
    """Flags for rustc: in the program, sources have paths that do not depend on this machine."""
    cargo_home = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    names = {cargo_home: "/cargo", str(engine): "/cachemark/engine"}
    return "\x1f".join(f"--remap-path-prefix={path}={name}" for path, name in names.items())


def _commit_time() -> dict[str, str]:
    time = git("show", "--no-patch", "--format=%ct", "HEAD").decode().strip()
    return {"SOURCE_DATE_EPOCH": time}


def write_parts(file: Path) -> None:
    """Write what cachemark installs from PyPI; the engine's wheel has a list of its own."""
    command = [UV, "export", "--project", str(ROOT), "--locked", "--no-dev", "--all-extras"]
    listed = subprocess.run(
        [*command, "--quiet", "--format", "cyclonedx1.5"], capture_output=True, check=True
    )
    parts = json.loads(listed.stdout)
    # Both are of this call: without them the same commit gives the same bytes.
    del parts["serialNumber"], parts["metadata"]["timestamp"]
    file.write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")


def write_checksums(out: Path) -> list[Path]:
    """Write SHA256SUMS, which `sha256sum --check` reads; return the packages."""
    packages = sorted(out.glob("cachemark*"))
    rows = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages]
    (out / "SHA256SUMS").write_text("".join(rows), encoding="utf-8")
    return packages


def git(*words: str) -> bytes:
    """The output of git."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
