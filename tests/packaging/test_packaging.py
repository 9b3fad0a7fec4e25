"""What is built of a checkout: programs and data, but nothing that a set-up made."""

from __future__ import annotations

import tomllib

from tests.conftest import ROOT

BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"][
    "build"
]


def test_what_the_workers_ignore_is_not_packed() -> None:
    """The packer knows the .gitignore of the root alone."""
    ignored = {
        line.strip("/")
        for path in ROOT.glob("workers/*/.gitignore")
        for line in path.read_text(encoding="utf-8").split()
    }
    assert {f"workers/*/{name}" for name in ignored} <= set(BUILD["exclude"])


def test_an_installed_cachemark_carries_workers_and_cases() -> None:
    wheel = BUILD["targets"]["wheel"]
    assert wheel["sources"] == {
        "src/cachemark": "cachemark",
        "workers": "cachemark/_workers",
        "conformance": "cachemark/_conformance",
    }
    assert set(wheel["packages"]) == set(wheel["sources"])
