"""`make release-check`: each thing that a person forgets is found, and nothing else."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tools import dist, release_check, third_party
from tools.third_party import Part

NAMES = {
    "cachemark-1.2.3-py3-none-any.whl",
    "cachemark-1.2.3.tar.gz",
    "cachemark_engine-1.2.3.tar.gz",
    "cachemark_engine-1.2.3-py3-none-manylinux2014_x86_64.whl",
    dist.PARTS,
    "SHA256SUMS",
}


def test_a_tag() -> None:
    assert not list(release_check.tag("1.2.3", ["nightly", "v1.2.3"]))
    assert list(release_check.tag("1.2.3", ["v1.2.30"]))


@pytest.mark.parametrize(
    ("heading", "problems"),
    [
        ("## [Unreleased]\n\n## [1.2.3] - 2026-11-23\n\n## [1.2.2] - 2026-01-01", 0),
        ("## [1.2.3] - 2026-11-23", 0),
        ("## [Unreleased]", 1),
        ("## [1.2.4] - 2026-11-24\n\n## [1.2.3] - 2026-11-23", 1),
        ("## [1.2.3]", 1),
        ("## [1x2.3] - 2026-11-23", 1),
    ],
)
def test_the_newest_section_of_the_changelog(heading: str, problems: int) -> None:
    assert len(list(release_check.released("1.2.3", f"# Changelog\n\n{heading}\n"))) == problems


def test_the_packages_of_a_version() -> None:
    assert not list(release_check.complete("1.2.3", NAMES | {"SHA256SUMS.asc"}))
    for name in NAMES:
        (problem,) = release_check.complete("1.2.3", NAMES - {name})
        assert "make dist" in problem
    (problem,) = release_check.complete("1.2.3", NAMES | {"cachemark-1.2.2.tar.gz"})
    assert "cachemark-1.2.2.tar.gz" in problem


def test_checksums(tmp_path: Path) -> None:
    package = tmp_path / "cachemark-1.2.3.tar.gz"
    package.write_bytes(b"packed")
    assert len(list(release_check.checksums(tmp_path))) == 1
    dist.write_checksums(tmp_path)
    assert not list(release_check.checksums(tmp_path))
    package.write_bytes(b"packed again")
    assert len(list(release_check.checksums(tmp_path))) == 1


def test_lists_of_parts(tmp_path: Path) -> None:
    listed, empty = json.dumps({"components": [{"name": "clap"}]}), json.dumps({"components": []})
    for text, problems in ((listed, 0), (empty, 2)):
        with zipfile.ZipFile(tmp_path / "cachemark_engine-1.2.3-x.whl", "w") as files:
            files.writestr("sboms/cachemark-engine.cyclonedx.json", text)
        (tmp_path / dist.PARTS).write_text(text, encoding="utf-8")
        assert len(list(release_check.parts(tmp_path))) == problems


def test_lock_files_name_packages_of_every_registry() -> None:
    found = third_party.locked(dist.ROOT)
    registries = {part.registry for part in found}
    assert registries == {"crates.io", "PyPI", "npm", "Go", "Maven", "RubyGems"}
    # Versions of other files are put in.
    assert not [part for part in found if "$" in part.version]
    assert "serde" in {part.name for part in found if part.registry == "crates.io"}
    assert "org.openjdk.jmh:jmh-core" in {part.name for part in found}
    assert "cachemark" not in {part.name for part in found}


def test_a_page_is_read_as_it_was_written() -> None:
    parts = {Part("npm", "@hapi/b64", "5.0.0"), Part("Maven", "a.b:c", "1"), Part("Go", "x", "v1")}
    known = {Part("Maven", "a.b:c", "1"): "The Licence, Version 2.0"}
    read = third_party.rows(third_party.page(parts, known))
    assert set(read) == parts
    assert read | known == read
