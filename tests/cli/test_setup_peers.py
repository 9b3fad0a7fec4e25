"""`cachemark setup peers`: the other load generators, and how to get each of them."""

import shutil
from pathlib import Path

import pytest

from cachemark.checks.fidelity.tools import TOOLS
from tests.cli.in_process import Inside

# It logs what it is asked, and `installs` a program beside itself.
APT_GET = """#!/bin/sh
echo "$*" >> "{folder}/asked"
case "$*" in *libmemcached-tools*) cp "{folder}/tool" "{folder}/memcaslap" ;; esac
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH: without load generators, with an apt-get of the test's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "cp"):
        program = shutil.which(name)
        assert program
        (folder / name).symlink_to(program)
    texts = {"apt-get": APT_GET.format(folder=folder), "sudo": '#!/bin/sh\nexec "$@"\n', "tool": ""}
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def rows(out: str) -> dict[str, tuple[str, str]]:
    """State and text of each load generator."""
    split = [line.split(maxsplit=2) for line in out.splitlines() if line.count(" ") > 2]
    return {name: (state, text) for state, name, text in split}


def test_each_missing_tool_is_a_line_with_its_remedy(inside: Inside, path: Path) -> None:
    said = inside("setup", "peers")
    assert said.returncode == 0
    listed = rows(said.stdout)
    assert list(listed) == list(TOOLS)
    assert {state for state, _ in listed.values()} == {"missing"}
    assert listed["memaslap"][1].startswith("`cachemark setup --install peers`")
    for name in set(TOOLS) - {"memaslap"}:
        assert TOOLS[name].home in listed[name][1]
    assert not (path / "asked").exists()


def test_a_tool_on_path_is_ready(inside: Inside, path: Path) -> None:
    shutil.copy(path / "tool", path / "mcperf")
    listed = rows(inside("setup", "peers").stdout)
    assert listed["mutilate"] == ("ready", str(path / "mcperf"))
    assert listed["mc-crusher"][0] == "missing"


def test_what_debian_has_is_installed_once(inside: Inside, path: Path) -> None:
    for _ in range(2):
        said = inside("setup", "--install", "peers")
        assert said.returncode == 0
        assert rows(said.stdout)["memaslap"] == ("ready", str(path / "memcaslap"))
    asked = (path / "asked").read_text().splitlines()
    assert [line for line in asked if "install" in line] == [
        "install -y -qq --no-install-recommends libmemcached-tools -o DPkg::Lock::Timeout=600"
    ]


def test_a_language_beside_it_is_checked_before_anything_is_installed(
    inside: Inside, path: Path
) -> None:
    said = inside("setup", "--install", "peers", "cobol")
    assert said.returncode == 2
    assert "no workers in 'cobol'" in said.stderr
    assert not (path / "asked").exists()
