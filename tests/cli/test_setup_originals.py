"""`cachemark setup originals`: the originals' software, where each is, and what names it here."""

import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.originals import ORIGINALS, Original
from cachemark.host import process
from tests.cli.in_process import Inside
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "originals.md").read_text(encoding="utf-8")
CLIENTS = registry(process.binary_path())
RUBY = shutil.which("ruby")
# The files of a library that the worker needs to say that it is there.
GEM = (
    "class MemCache; VERSION = '1.8.5-of-the-test'; class MemCacheError < StandardError; end; end\n"
)
# Where each is, by its `worker.toml`; of the servers, by the test.
HOMES = {
    "quickcached": "github.com/QuickServerLab/QuickCached",
    "emcache": "github.com/numerodix/emcache",
    **{one.name: CLIENTS[one.name].home.removeprefix("https://")
       for one in ORIGINALS if one.name in CLIENTS},
}  # fmt: skip
VARIABLES = [
    "QUICKCACHED_HOME",
    "CACHEMARK_CONSTCACHE",
    *(f"CACHEMARK_GEM_{name.removeprefix('ruby/').replace('-', '_').upper()}"
      for name in (one.name for one in ORIGINALS) if name.startswith("ruby/")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, empty; and no variable that names one of them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return folder


def listed(inside: Inside) -> dict[str, tuple[str, str]]:
    """State and text of each."""
    said = inside("setup", "originals")
    assert said.returncode == 0, said.stderr
    split = [line.split(maxsplit=2) for line in said.stdout.splitlines()]
    return {name: (state, text) for state, name, text in split}


def put(path: Path, name: str) -> None:
    (path / name).write_text("#!/bin/sh\n")
    (path / name).chmod(0o755)


def test_each_missing_original_is_a_line_with_place_and_version(inside: Inside) -> None:
    lines = listed(inside)
    assert list(lines) == [one.name for one in ORIGINALS]
    for one in ORIGINALS:
        state, text = lines[one.name]
        assert state == "missing"
        assert text.endswith(f" (tried: {one.tried})")
        assert HOMES[one.name] in text
    assert "set QUICKCACHED_HOME to the folder" in lines["quickcached"][1]
    assert "put emcache on PATH or say binary=/path" in lines["emcache"][1]


def test_a_server_that_is_here_is_ready(
    inside: Inside, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(path, "emcache")
    put(path, "java")
    for name in ("dist/QuickCached-Server.jar", "conf/QuickCached.xml"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    monkeypatch.setenv("QUICKCACHED_HOME", str(tmp_path))
    lines = listed(inside)
    assert lines["emcache"] == ("ready", "--server emcache")
    assert lines["quickcached"] == ("ready", "--server quickcached")
    assert lines["php/constcache"][0] == "missing"


@pytest.mark.skipif(RUBY is None, reason="apt-get install ruby")
def test_a_library_is_asked_of_its_worker(
    inside: Inside, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RUBY
    (path / "ruby").symlink_to(RUBY)
    variable = "CACHEMARK_GEM_MEMCACHE_CLIENT"
    assert f"{variable}=/path/of/its/source" in listed(inside)["ruby/memcache-client"][1]
    monkeypatch.setenv(variable, "/nowhere")
    assert (
        f"{variable} names /nowhere, which is no folder"
        in (listed(inside)["ruby/memcache-client"][1])
    )
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "memcache.rb").write_text(GEM)
    monkeypatch.setenv(variable, str(tmp_path))
    assert listed(inside)["ruby/memcache-client"] == (
        "ready", "--client ruby/memcache-client: memcache-client 1.8.5-of-the-test",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["emcache", "QuickCached", "constcache", "ruby/memcached"])
def test_one_of_them_is_no_language(name: str, inside: Inside) -> None:
    said = inside("setup", name)
    assert said.returncode == 2
    assert "`cachemark setup originals` has it" in said.stderr


def test_debian_has_none_of_them(inside: Inside) -> None:
    said = inside("setup", "--install", "originals")
    assert said.returncode == 2
    assert "--install" in said.stderr


@pytest.mark.parametrize("one", ORIGINALS, ids=lambda one: one.name)
def test_the_page_has_their_places_and_versions(one: Original) -> None:
    assert HOMES[one.name].removeprefix("github.com/") in PAGE
    version = one.tried.partition(",")[0].removeprefix("tag ").removeprefix("commit ")
    assert version in PAGE
