"""List the packages of others that cachemark uses, with their licences: THIRD-PARTY.csv.

The lock files say which packages: cargo's, uv's, npm's, go.mod, the poms and the gemfiles. What the
packages of the poms need themselves is read from the workers of Java that are built here. npm's
lock file says the licences too. The others are read from what the package managers have installed
on this machine. A package that is not there keeps the licence that THIRD-PARTY.csv has already.
Packages of Debian are not listed, nor what Ruby's gems need, unless a gemfile names it.
"""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "THIRD-PARTY.csv"
CARGO = ("engine", "workers/rust")
PYTHON = (".", "workers/python")
UNKNOWN = "not known here"
_POM = "{http://maven.apache.org/POM/4.0.0}"
_COORDINATES = ("groupId", "artifactId", "version")
_MAVEN = "Maven"
_REPOSITORY = Path.home() / ".m2/repository"
_COLUMNS = ["registry", "package", "version", "licence"]


class Part(NamedTuple):
    """A package of a registry."""

    registry: str
    name: str
    version: str


def is_complete(listed: set[Part], locked: set[Part]) -> bool:
    """Whether a list has all packages of the lock files, and no other but what Java's need."""
    return locked <= listed and {part.registry for part in listed - locked} <= {_MAVEN}


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
    for path in sorted((root / "workers/java").rglob("pom.xml"), key=lambda path: len(path.parts)):
        if "target" in path.parts:
            continue
        tree = ElementTree.parse(path)
        for group in tree.iter(f"{_POM}properties"):
            properties |= {entry.tag.removeprefix(_POM): entry.text or "" for entry in group}
        for dependency in tree.iter(f"{_POM}dependency"):
            group_id, artifact, version = (
                dependency.findtext(f"{_POM}{name}", "") for name in _COORDINATES
            )
            if group_id != "cachemark" and version:
                yield Part(_MAVEN, f"{group_id}:{artifact}", _filled_in(version, properties))


def needed_by_maven(root: Path) -> set[Part]:
    """The packages of Java's workers, with their dependencies; empty if they are not built here."""
    java = root / "workers/java"
    jars = [*java.glob("target/lib/*.jar"), *java.glob("jmh/target/*benchmarks.jar")]
    poms = {path.stem: path.parent for path in _REPOSITORY.rglob("*.pom")} if jars else {}
    found = {part for jar in jars for part in _parts_of_jar(jar)}
    found |= {_part_of_folder(poms[jar.stem]) for jar in jars if jar.stem in poms}
    return {part for part in found if not part.name.startswith("cachemark:")}


def _parts_of_jar(jar: Path) -> Iterator[Part]:
    """The packages whose classes are in a jar: most say so."""
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.properties", name):
                text = files.read(name).decode()
                said = dict(re.findall(r"^(\w+) *= *(.*?)\s*$", text, re.M))
                group, artifact, version = (said[field] for field in _COORDINATES)
                yield Part(_MAVEN, f"{group}:{artifact}", version)


def _part_of_folder(folder: Path) -> Part:
    """The package of a folder of Maven's repository."""
    *group, artifact, version = folder.relative_to(_REPOSITORY).parts
    return Part(_MAVEN, f"{'.'.join(group)}:{artifact}", version)


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
            yield part, (package["license"] or UNKNOWN).replace("/", " OR ").replace("  ", " ")


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
        given += [
            _recognised(file.read_text(encoding="utf-8"))
            for file in package.files or []
            if re.match(r"LICEN[CS]E|COPYING", file.name)
        ]
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
    for part in {*_maven(ROOT), *needed_by_maven(ROOT)}:
        group, artifact = part.name.split(":")
        if names := _licences_of_pom(group, artifact, part.version):
            yield part, " AND ".join(names)


def _licences_of_pom(group: str, artifact: str, version: str) -> list[str]:
    """The licences of a pom that Maven has fetched, or of its parent."""
    folder = _REPOSITORY / group.replace(".", "/") / artifact / version
    pom = folder / f"{artifact}-{version}.pom"
    if not pom.is_file():
        return []
    tree = ElementTree.parse(pom)
    names = [
        name.text.strip() for name in tree.iterfind(f".//{_POM}license/{_POM}name") if name.text
    ]
    parent = tree.find(f"{_POM}parent")
    if names or parent is None:
        return names
    of_parent = (parent.findtext(f"{_POM}{name}", "") for name in _COORDINATES)
    return _licences_of_pom(*of_parent)


def listed() -> dict[Part, str]:
    """The packages of THIRD-PARTY.csv, and their licences."""
    return rows(TABLE.read_text(encoding="utf-8")) if TABLE.is_file() else {}


def rows(text: str) -> dict[Part, str]:
    """The packages of a table, and their licences."""
    _, *found = csv.reader(io.StringIO(text))
    return {Part(registry, name, version): licence for registry, name, version, licence in found}


def table(parts: set[Part], known: dict[Part, str]) -> str:
    """The table: a row for each package."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((*part, known.get(part, UNKNOWN)) for part in sorted(parts))
    return text.getvalue()


def main() -> int:
    """Write the table."""
    before = listed()
    of_java = needed_by_maven(ROOT) or {part for part in before if part.registry == _MAVEN}
    TABLE.write_text(table(locked(ROOT) | of_java, {**before, **licences()}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
