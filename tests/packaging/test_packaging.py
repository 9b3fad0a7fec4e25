"""A package of a checkout has programs and data, but nothing that a set-up made."""

import re
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from cachemark import __version__
from tests.conftest import ROOT

BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"][
    "build"
]
TAKEN = sorted(ROOT.glob("src/**/SOURCE.md"))


def test_what_the_workers_ignore_is_not_packed() -> None:
    """The packer knows the .gitignore of the root alone."""
    ignored = {
        line.strip("/")
        for path in ROOT.glob("workers/*/.gitignore")
        for line in path.read_text(encoding="utf-8").split()
    }
    assert {f"workers/*/{name}" for name in ignored} <= set(BUILD["exclude"])


def test_an_installed_cachemark_carries_workers_cases_and_sources() -> None:
    wheel = BUILD["targets"]["wheel"]
    assert wheel["sources"] == {
        "src/cachemark": "cachemark",
        "workers": "cachemark/_workers",
        "conformance": "cachemark/_conformance",
        "engine": "cachemark/_engine",
        "site/html": "cachemark/_site/html",
    }
    assert set(wheel["packages"]) == set(wheel["sources"])


def test_all_parts_have_the_version_of_the_engine() -> None:
    """It is written in engine/Cargo.toml only; what depends on another part names the same one."""
    workspace = tomllib.loads((ROOT / "engine" / "Cargo.toml").read_text(encoding="utf-8"))[
        "workspace"
    ]
    assert workspace["package"]["version"] == __version__
    parts = {
        name: dependency
        for name, dependency in workspace["dependencies"].items()
        if isinstance(dependency, dict) and "path" in dependency
    }
    # Without a version a crate can be a dependency of tests only: cargo removes it from packages.
    unpublished = parts.pop("cachemark-properties")
    assert "version" not in unpublished
    assert len(parts) > 10
    assert {name: part["version"] for name, part in parts.items()} == dict.fromkeys(
        parts, f"={__version__}"
    )


def test_packages_of_debian_have_the_names_of_every_release() -> None:
    """`php8.2-cli` and `openjdk-17-jdk-headless` are in one release only."""
    named = [
        package
        for path in ROOT.glob("workers/*/worker.toml")
        for package in tomllib.loads(path.read_text(encoding="utf-8")).get("packages", [])
    ]
    assert "php-cli" in named
    assert [name for name in named if re.match(r"(php|openjdk-|ruby|golang-)\d", name)] == []


@pytest.mark.parametrize("source", TAKEN, ids=lambda source: source.parent.name)
def test_what_was_taken_from_others_is_unchanged(source: Path) -> None:
    rows = re.findall(r"^\| `(.+)` \| `(\w{64})` \|", source.read_text(encoding="utf-8"), re.M)
    files = [path for path in source.parent.iterdir() if path != source]
    assert dict(rows) == {path.name: sha256(path.read_bytes()).hexdigest() for path in files}
