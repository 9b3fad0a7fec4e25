"""Check that the packages in dist/ are a release: what a person forgets, in one list.

Each check gives a line: ok, or what is wrong and what to do. The exit status is 1 if one is wrong.
The crates are documented and packaged as the crate registry would do it, which takes minutes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import dist, third_party

ROOT = dist.ROOT


def main() -> int:
    """Print all checks."""
    version = workspace_version()
    packages = ROOT / "dist"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    problems = {
        "commit": list(_commit()),
        "tag": list(tag(version, dist.git("tag", "--points-at", "HEAD").decode().split())),
        "changelog": list(released(version, changelog)),
        "third-party": list(licences(third_party.listed(), third_party.locked(ROOT))),
        "packages": list(complete(version, {path.name for path in packages.glob("*")})),
        "checksums": list(checksums(packages)),
        "parts": list(parts(packages)),
        "wheels": [*licensed(packages), *with_symbols(packages)],
        "crates": list(crates(ROOT / "engine")),
        "site": list(site(packages)),
    }
    for name, found in problems.items():
        print(f"{name:12} {'; '.join(found) or 'ok'}")
    print("Sign dist/SHA256SUMS as dist/SHA256SUMS.asc: gpg --armor --detach-sign dist/SHA256SUMS")
    return 1 if any(problems.values()) else 0


def workspace_version() -> str:
    """The version of all parts."""
    return str(_toml(ROOT / "engine" / "Cargo.toml")["workspace"]["package"]["version"])


def _commit() -> Iterator[str]:
    if dist.git("status", "--porcelain"):
        yield "there are changes in no commit: commit them"


def tag(version: str, tags: list[str]) -> Iterator[str]:
    """The commit has the tag of its version."""
    if f"v{version}" not in tags:
        yield f"this commit has not the tag v{version}: git tag --sign v{version}"


def released(version: str, changelog: str) -> Iterator[str]:
    """The newest section of the changelog is this version, with a date."""
    newest = re.search(r"^## (?!\[Unreleased\])(.+)$", changelog, re.M)
    wanted = rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d"
    if newest is None or not re.fullmatch(wanted, newest[1]):
        yield f"the newest section of CHANGELOG.md is not [{version}] - YYYY-MM-DD: rename it"


def licences(listed: dict[third_party.Part, str], locked: set[third_party.Part]) -> Iterator[str]:
    """THIRD-PARTY.csv has each package of the lock files, and its licence."""
    if not third_party.is_complete(set(listed), locked):
        yield "THIRD-PARTY.csv and the lock files differ: make third-party"
    if unknown := sorted(part.name for part in listed if listed[part] == third_party.UNKNOWN):
        yield f"no licence in THIRD-PARTY.csv: {', '.join(unknown)}: look it up, and write it there"


def complete(version: str, names: set[str]) -> Iterator[str]:
    """Every package of this version is there, and no other."""
    needed = {
        f"cachemark-{version}-py3-none-any.whl",
        f"cachemark-{version}.tar.gz",
        f"cachemark_engine-{version}.tar.gz",
        dist.PARTS,
        "SHA256SUMS",
    }
    rest = names - {"SHA256SUMS.asc"} - needed
    wheels = {name for name in rest if re.fullmatch(rf"cachemark_engine-{version}-.+\.whl", name)}
    if missing := sorted(needed - names):
        yield f"missing: {', '.join(missing)}: make dist"
    if not wheels:
        yield "no wheel of the engine: make dist"
    if rest - wheels:
        yield f"of no use: {', '.join(sorted(rest - wheels))}"


def checksums(folder: Path) -> Iterator[str]:
    """SHA256SUMS has the sum of each file."""
    listed = folder / "SHA256SUMS"
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    sums = {name: total for total, _, name in (line.partition("  ") for line in lines)}
    for path in sorted(folder.glob("cachemark*")):
        if sums.get(path.name) != hashlib.sha256(path.read_bytes()).hexdigest():
            yield f"{path.name} has another sum than in SHA256SUMS, or none: make dist"


def parts(folder: Path) -> Iterator[str]:
    """Both lists of parts are there: in the engine's wheel, and beside the other one."""
    for wheel in folder.glob("cachemark_engine-*.whl"):
        with zipfile.ZipFile(wheel) as files:
            names = [name for name in files.namelist() if name.endswith(".cyclonedx.json")]
            if not names or not json.loads(files.read(names[0]))["components"]:
                yield f"{wheel.name} has no list of its parts"
    listed = folder / dist.PARTS
    if listed.is_file() and not json.loads(listed.read_text(encoding="utf-8"))["components"]:
        yield f"{dist.PARTS} is empty"


def licensed(folder: Path) -> Iterator[str]:
    """Each wheel has the licence."""
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as files:
            if not any(name.endswith(".dist-info/licenses/LICENSE") for name in files.namelist()):
                yield f"{wheel.name} has no licence: make dist"


def with_symbols(folder: Path) -> Iterator[str]:
    """The engine has the names of its functions, by which profilers count."""
    for wheel in folder.glob("cachemark_engine-*.whl"):
        with zipfile.ZipFile(wheel) as files:
            programs = [name for name in files.namelist() if name.endswith("/cachemark-engine")]
            if not programs or b".symtab" not in files.read(programs[0]):
                yield f"{wheel.name} has no symbols: make dist"


def crates(workspace: Path) -> Iterator[str]:
    """The documentation has no warnings; each crate that is published is packed, and built so."""
    unpublished = [
        f"--exclude={manifest['package']['name']}"
        for manifest in map(_toml, sorted(workspace.glob("crates/*/Cargo.toml")))
        if manifest["package"].get("publish") is False
    ]
    strict = {**os.environ, "RUSTDOCFLAGS": "-D warnings"}
    for words in (["doc", "--no-deps"], ["package", *unpublished]):
        command = ["cargo", *words, "--workspace", "--locked", "--quiet"]
        ended = subprocess.run(
            command, cwd=workspace, env=strict, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            first = next((line for line in ended.stderr.splitlines() if "error" in line), "")
            yield f"{first.strip()}: cd engine && {' '.join(command)}"


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def site(folder: Path) -> Iterator[str]:
    """The wheel has the documentation, which `cachemark web` shows."""
    for wheel in folder.glob("cachemark-*.whl"):
        with zipfile.ZipFile(wheel) as files:
            if "cachemark/_site/html/index.html" not in files.namelist():
                yield f"{wheel.name} has no documentation site: make dist"


if __name__ == "__main__":
    sys.exit(main())
