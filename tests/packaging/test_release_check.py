"""`make release-check`: each thing that a person forgets is found, and nothing else."""

import base64
import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tools import dist, release_check, third_party, try_packages
from tools.engine_wheel import SOURCES, finish
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


def test_the_wheel_of_this_processor_is_tried() -> None:
    """A release has one for each kind of processor; there is one sdist."""
    rest, engine, other = map(
        Path,
        (
            "cachemark-1.2.3-py3-none-any.whl",
            "cachemark_engine-1.2.3-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "cachemark_engine-1.2.3-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.whl",
        ),
    )
    assert try_packages.for_machine([engine, other, rest], "x86_64") == [rest, engine]
    assert try_packages.for_machine([engine, other, rest], "aarch64") == [rest, other]
    sdists = [Path("cachemark-1.2.3.tar.gz"), Path("cachemark_engine-1.2.3.tar.gz")]
    assert try_packages.for_machine(reversed(sdists), "x86_64") == sdists


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


def test_wheels_have_the_licence_and_symbols(tmp_path: Path) -> None:
    name = "cachemark_engine-1.2.3"
    wheel, program = tmp_path / f"{name}-x.whl", f"{name}.data/scripts/cachemark-engine"
    licence = f"{name}.dist-info/licenses/LICENSE"
    for files, problems in (
        ({licence: b"", program: b"\0.symtab\0"}, (0, 0)),
        ({licence: b"", program: b"\x7fELF"}, (0, 1)),
        ({program: b"\0.symtab\0"}, (1, 0)),
        ({}, (1, 1)),
    ):
        with zipfile.ZipFile(wheel, "w") as written:
            for path, content in files.items():
                written.writestr(path, content)
        found = release_check.licensed(tmp_path), release_check.with_symbols(tmp_path)
        assert tuple(len(list(each)) for each in found) == problems


def test_the_program_of_a_wheel_keeps_its_symbols_only(tmp_path: Path) -> None:
    """The list of the wheel's files is right afterwards: an installer compares the hashes."""
    wheel, record = (
        tmp_path / "cachemark_engine-1.2.3-x.whl",
        "cachemark_engine-1.2.3.dist-info/RECORD",
    )
    program = "cachemark_engine-1.2.3.data/scripts/cachemark-engine"
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return 7; }\n", encoding="utf-8")
    subprocess.run(["gcc", "-g", "-o", tmp_path / "program", source], check=True)
    whole = (tmp_path / "program").read_bytes()
    assert b".debug_info" in whole
    with zipfile.ZipFile(wheel, "w") as files:
        info = zipfile.ZipInfo(program, (2026, 11, 25, 0, 0, 0))
        info.external_attr = 0o755 << 16
        files.writestr(info, whole)
        files.writestr(record, f"{program},sha256=old,1\n{record},,\n")
    finish(wheel, "of the sources")
    with zipfile.ZipFile(wheel) as files:
        left = files.read(program)
        listed, hashed, own = files.read(record).decode().splitlines()
        sources = record.replace("RECORD", SOURCES)
        assert files.read(sources) == b"of the sources\n"
        assert files.getinfo(program).external_attr >> 16 == 0o755
        assert files.getinfo(program).date_time == (2026, 11, 25, 0, 0, 0)
    assert b".symtab" in left
    assert b".debug_info" not in left
    digest = base64.urlsafe_b64encode(hashlib.sha256(left).digest()).decode().rstrip("=")
    assert (listed, own) == (f"{program},sha256={digest},{len(left)}", f"{record},,")
    assert hashed.startswith(f"{sources},sha256=")


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


def test_each_package_has_a_licence() -> None:
    clap, jar, other = (
        Part("crates.io", "clap", "4"),
        Part("Maven", "a:b", "1"),
        Part("Go", "x", "1"),
    )
    assert not list(release_check.licences({clap: "MIT"}, {clap}))
    # No lock file has the packages that the poms need.
    assert not list(release_check.licences({clap: "MIT", jar: "MIT"}, {clap}))
    for listed in ({}, {clap: "MIT", other: "MIT"}, {clap: third_party.UNKNOWN}):
        (problem,) = release_check.licences(listed, {clap})
        assert "THIRD-PARTY.csv" in problem
    assert not list(release_check.licences(third_party.listed(), third_party.locked(dist.ROOT)))


def test_jars_say_whose_classes_they_have(tmp_path: Path) -> None:
    """Also one whose classes were put into the jar of another; our own are not listed."""
    jar = tmp_path / "workers" / "java" / "target" / "lib" / "b-1.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as files:
        for group, artifact in (("a", "b"), ("c.d", "shaded"), ("cachemark", "core")):
            text = f"#Created\nversion=1.2\ngroupId={group}\nartifactId={artifact}\r\n"
            files.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", text)
    found = {Part("Maven", "a:b", "1.2"), Part("Maven", "c.d:shaded", "1.2")}
    assert third_party.needed_by_maven(tmp_path) == found


def test_table_is_read_as_it_was_written() -> None:
    parts = {Part("npm", "@hapi/b64", "5.0.0"), Part("Maven", "a.b:c", "1"), Part("Go", "x", "v1")}
    known = {Part("Maven", "a.b:c", "1"): "The Licence, Version 2.0"}
    read = third_party.rows(third_party.table(parts, known))
    assert set(read) == parts
    assert read | known == read
