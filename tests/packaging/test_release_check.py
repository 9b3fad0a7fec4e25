"""`make release-check`: each thing that a person forgets is found, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
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


def test_two_builds(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "same").write_bytes(b"packed")
        (folder / "other").write_bytes(folder.name.encode())
    (first / "SHA256SUMS.asc").touch()
    assert dist.differences(first, second) == ["other"]
    (second / "more").touch()
    assert dist.differences(first, second) == ["more", "other"]


def test_lists_of_parts(tmp_path: Path) -> None:
    listed, empty = json.dumps({"components": [{"name": "clap"}]}), json.dumps({"components": []})
    for text, problems in ((listed, 0), (empty, 2)):
        with zipfile.ZipFile(tmp_path / "cachemark_engine-1.2.3-x.whl", "w") as files:
            files.writestr("sboms/cachemark-engine.cyclonedx.json", text)
        (tmp_path / dist.PARTS).write_text(text, encoding="utf-8")
        assert len(list(release_check.parts(tmp_path))) == problems


CRATE = """
[package]
name = "small"
version = "0.1.0"
edition = "2021"
license = "Apache-2.0"
description = "A crate."
"""


@pytest.mark.slow("compiles a crate, three times")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust toolchain")
@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        pytest.param("//! A page.\n", "", id="right"),
        pytest.param("//! A page of [`Nothing`].\n", "cargo doc", id="a link to nothing"),
        pytest.param('include!("../../outside.rs");\n', "cargo package", id="a file is left out"),
    ],
)
def test_crates(source: str, wrong: str, tmp_path: Path) -> None:
    """One of them cannot be packed, and is not published either."""
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    (tmp_path / "crates" / "outside.rs").parent.mkdir()
    (tmp_path / "crates" / "outside.rs").write_text("")
    hidden = (
        CRATE.replace('"small"', '"hidden"')
        + 'publish = false\n[dependencies.small]\npath = "../small"\n'
    )
    for name, manifest, text in (("small", CRATE, source), ("hidden", hidden, "")):
        (tmp_path / "crates" / name / "src").mkdir(parents=True)
        (tmp_path / "crates" / name / "Cargo.toml").write_text(manifest)
        (tmp_path / "crates" / name / "src" / "lib.rs").write_text(text)
    subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=tmp_path, check=True)
    found = list(release_check.crates(tmp_path))
    assert [wrong in problem for problem in found] == ([True] if wrong else []), found


def test_the_wheel_has_the_documentation(tmp_path: Path) -> None:
    for name, problems in (("cachemark/_site/html/index.html", 0), ("cachemark/app.py", 1)):
        with zipfile.ZipFile(tmp_path / "cachemark-1.2.3-py3-none-any.whl", "w") as files:
            files.writestr(name, "")
        assert len(list(release_check.site(tmp_path))) == problems


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
