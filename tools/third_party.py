"""List the packages of others that cachemark uses, with their licences: THIRD-PARTY.md.

The lock files say which packages: cargo's, uv's, npm's, go.mod, the poms and the gemfiles. npm's
says the licences too. The others are read from what the package managers have installed on this
machine. A package that is not there keeps the licence that THIRD-PARTY.md has already. Packages of
Debian are not listed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "THIRD-PARTY.md"
CARGO = ("engine", "workers/rust")
PYTHON = (".", "workers/python")
_UNKNOWN = "not known here"
_HEAD = """# Packages of others

cachemark and its workers use these packages. None of them is in this repository: the package
managers fetch what the lock files name. The program `cachemark-engine` contains those of crates.io.
The documentation site, which the wheel of cachemark contains, has scripts and styles of zensical.
Of Maven and RubyGems only the packages are listed that the workers name themselves.
`make third-party` prints this page.

"""


class Part(NamedTuple):
    """A package of a registry."""

    registry: str
    name: str
    version: str


def locked(root: Path) -> set[Part]:
    """The packages that the lock files name."""
    return {
        *_cargo(root),
        *_python(root),
        *_npm(root),
        *_go((root / "workers/go/go.mod").read_text(encoding="utf-8")),
        *_maven(root),
        *_gems(root),
    }


def _cargo(root: Path) -> Iterator[Part]:
    for folder in CARGO:
        lock = tomllib.loads((root / folder / "Cargo.lock").read_text(encoding="utf-8"))
        for package in lock["package"]:
            if "source" in package:
                yield Part("crates.io", package["name"], package["version"])


def _python(root: Path) -> Iterator[Part]:
    for folder in PYTHON:
        lock = tomllib.loads((root / folder / "uv.lock").read_text(encoding="utf-8"))
        for package in lock["package"]:
            if "registry" in package["source"]:
                yield Part("PyPI", package["name"], package["version"])


def _npm(root: Path) -> Iterator[Part]:
    for name, package in _npm_packages(root):
        yield Part("npm", name, package["version"])


def _npm_packages(root: Path) -> Iterator[tuple[str, dict[str, str]]]:
    lock = json.loads((root / "workers/node/package-lock.json").read_text(encoding="utf-8"))
    for path, package in lock["packages"].items():
        if path:
            yield path.rpartition("node_modules/")[2], package


def _go(go_mod: str) -> Iterator[Part]:
    for name, version in re.findall(r"^(?:require )?\s*([\w.-]+\.\w+/\S+) (v\S+)", go_mod, re.M):
        yield Part("Go", name, version)


def _maven(root: Path) -> Iterator[Part]:
    """Each pom names versions, or has them of the first one."""
    properties: dict[str, str] = {}
    space = "{http://maven.apache.org/POM/4.0.0}"
    for path in sorted((root / "workers/java").rglob("pom.xml"), key=lambda path: len(path.parts)):
        if "target" in path.parts:
            continue
        tree = ElementTree.parse(path)
        for group in tree.iter(f"{space}properties"):
            properties |= {entry.tag.removeprefix(space): entry.text or "" for entry in group}
        for dependency in tree.iter(f"{space}dependency"):
            group_id, artifact, version = (
                dependency.findtext(f"{space}{name}", "")
                for name in ("groupId", "artifactId", "version")
            )
            if group_id != "cachemark" and version:
                yield Part("Maven", f"{group_id}:{artifact}", _filled_in(version, properties))


def _filled_in(version: str, properties: dict[str, str]) -> str:
    """A version that may name properties, as `${jmh.version}`."""
    return re.sub(r"\$\{(.+?)\}", lambda found: properties[found[1]], version)


def _gems(root: Path) -> Iterator[Part]:
    for path in (root / "workers/ruby/gemfiles").glob("*.gemfile"):
        text = path.read_text(encoding="utf-8")
        for name, version in re.findall(r"^\s*gem '(\S+)', '(\S+)'", text, re.M):
            yield Part("RubyGems", name, version)


def licences() -> dict[Part, str]:
    """The licences that this machine can tell."""
    return {
        **{
            Part("npm", name, package["version"]): package["license"]
            for name, package in _npm_packages(ROOT)
            if "license" in package
        },
        **dict(_licences_of_crates()),
        **dict(_licences_of_python()),
        **dict(_licences_of_go()),
        **dict(_licences_of_maven()),
    }


def _licences_of_crates() -> Iterator[tuple[Part, str]]:
    for folder in CARGO:
        command = ["cargo", "metadata", "--locked", "--format-version", "1"]
        told = subprocess.run(command, cwd=ROOT / folder, capture_output=True, check=True)
        for package in json.loads(told.stdout)["packages"]:
            part = Part("crates.io", package["name"], package["version"])
            yield part, (package["license"] or _UNKNOWN).replace("/", " OR ").replace("  ", " ")


def _licences_of_python() -> Iterator[tuple[Part, str]]:
    places = [
        str(path) for folder in PYTHON for path in ROOT.glob(f"{folder}/.venv/lib/*/site-packages")
    ]
    for package in metadata.distributions(path=places):
        about = package.metadata
        classified = [
            line.rpartition(" :: ")[2]
            for line in about.get_all("Classifier") or []
            if line.startswith("License :: ") and not line.endswith(":: OSI Approved")
        ]
        given = [*(about.get_all("License-Expression") or []), " AND ".join(classified)]
        # The field may have the whole text of the licence.
        given += [text for text in about.get_all("License") or [] if len(text) < 40]
        if licence := next(filter(None, given), ""):
            name = re.sub(r"[-_.]+", "-", about["Name"]).lower()
            yield Part("PyPI", name, package.version), licence


def _licences_of_go() -> Iterator[tuple[Part, str]]:
    try:
        told = subprocess.run(
            ["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True
        )
    except OSError:
        return
    for part in _go((ROOT / "workers/go/go.mod").read_text(encoding="utf-8")):
        # The module cache writes a capital letter as `!` and the small one.
        path = re.sub("[A-Z]", lambda found: f"!{found[0].lower()}", part.name)
        for file in Path(told.stdout.strip(), f"{path}@{part.version}").glob("LICENSE*"):
            if licence := _recognised(file.read_text(encoding="utf-8")):
                yield part, licence


def _recognised(text: str) -> str:
    """The name of a licence, by a sentence of its text; empty if none is known."""
    words = " ".join(text.split())
    names = {
        "Apache License Version 2.0": "Apache-2.0",
        "Permission is hereby granted, free of charge": "MIT",
        "Neither the name of": "BSD-3-Clause",
        "Redistribution and use in source and binary forms": "BSD-2-Clause",
    }
    return next((name for sentence, name in names.items() if sentence in words), "")


def _licences_of_maven() -> Iterator[tuple[Part, str]]:
    for part in _maven(ROOT):
        group, artifact = part.name.split(":")
        folder = Path.home() / ".m2/repository" / group.replace(".", "/") / artifact / part.version
        pom = folder / f"{artifact}-{part.version}.pom"
        if pom.is_file():
            names = re.findall(
                r"<license>.*?<name>\s*(.*?)\s*</name>", pom.read_text(encoding="utf-8"), re.S
            )
            if names:
                yield part, " AND ".join(names)


def rows(page: str) -> dict[Part, str]:
    """The packages of a page, and their licences."""
    return {
        Part(registry, name, version): licence
        for registry, name, version, licence in re.findall(
            r"^\| ([\w.]+) \| (\S+) \| (\S+) \| (.+) \|$", page.partition("|---")[2], re.M
        )
    }


def page(parts: set[Part], known: dict[Part, str]) -> str:
    """The page, in the order of registries and names."""
    lines = ["| registry | package | version | licence |", "|---|---|---|---|"]
    for part in sorted(parts):
        lines.append(f"| {' | '.join(part)} | {known.get(part, _UNKNOWN)} |")
    return _HEAD + "\n".join(lines) + "\n"


def main() -> int:
    """Write the page."""
    before = rows(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
    PAGE.write_text(page(locked(ROOT), {**before, **licences()}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
