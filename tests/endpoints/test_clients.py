"""The registry of clients, whose broken files stop one language only, and what workers claim."""

from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.capabilities import Demand, unclaimed
from cachemark.endpoints.clients import matching_clients, parse_client, registry
from cachemark.endpoints.worker_setup import build_all, worker_folders
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.model.protocol import Prepare, Ready

ONE = "127.0.0.1:11211"
PLAIN: dict[str, Any] = {"servers": [ONE], "tape": "t"}
GOOD = """
language = "good"

[runtime.good]
command = ["sh", "worker.sh", "{client}"]

[[client]]
name = "one"
runtimes = ["good"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two languages: one whose file is right, one with a typo."""
    for name, text in (("good", GOOD), ("typo", GOOD.replace("name =", "nmae ="))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "worker.toml").write_text(text, encoding="utf-8")
        program = tmp_path / name / "setup"
        program.write_text("#!/bin/sh\necho built\n", encoding="utf-8")
        program.chmod(0o755)
    return tmp_path


def test_a_broken_worker_toml_affects_only_its_own_language(folder: Path) -> None:
    known = registry("engine", folder)
    assert known["good/one"].missing() == ""
    assert "nmae" in known["typo/worker.toml"].missing()
    assert parse_client("good/one", known).client.language == "good"


def test_a_client_of_a_broken_worker_toml_names_the_file(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"typo/worker\.toml.*nmae"):
        parse_client("typo/one", registry("engine", folder))


def test_set_up_continues_after_a_broken_worker_toml(folder: Path) -> None:
    results = build_all(worker_folders(folder, ()))
    states = {result.folder.name: result.state for result in results}
    assert states == {"good": "ready", "typo": "failed"}


def test_the_words_on_defaults_are_those_of_worker_toml(folder: Path) -> None:
    path = folder / "good" / "worker.toml"
    path.write_text(GOOD + 'defaults = "no time-outs"\n', encoding="utf-8")
    assert registry("", folder)["good/one"].defaults == "no time-outs"


def test_a_pattern_leaves_out_the_clients_without_a_library() -> None:
    named = set(matching_clients(["python/*"], registry(process.binary_path())))
    assert "python/pymemcache" in named
    assert not named & {"python/cachetools", "python/null", "python/socket"}


@pytest.mark.parametrize(
    ("capability", "prepare", "demand"),
    [
        ("threads", {"threads": 2, "connections": 2}, {}),
        ("pipeline", {"depth": 2}, {}),
        ("shared", {"threads": 4, "connections": 2}, {}),
        ("cluster", {"servers": [ONE, "127.0.0.1:11212"]}, {}),
        ("unix", {"servers": ["unix:/run/memcached.sock"]}, {}),
        ("open_loop", {}, {"open_loop": True}),
        ("think", {}, {"think": True}),
        ("gat", {}, {"kinds": {"gat"}}),
    ],
)
def test_a_capability_that_is_not_claimed_is_refused(
    capability: str, prepare: dict[str, Any], demand: dict[str, Any]
) -> None:
    wanted = Demand(prepare=Prepare(**{**PLAIN, **prepare}), **demand)
    others = {"threads", "pipeline", "shared", "cluster", "unix", "open_loop", "think", "get"}
    without = Ready(client="made", capabilities=sorted(others - {capability}))
    assert capability in unclaimed(wanted, without)
    claimed = Ready(client="made", capabilities=sorted(others | {capability}))
    assert unclaimed(wanted, claimed) == ""


def test_a_plain_trial_needs_only_its_kinds() -> None:
    wanted = Demand(prepare=Prepare(**PLAIN), kinds={"get", "set"})
    assert unclaimed(wanted, Ready(client="made", capabilities=["get", "set"])) == ""


def test_a_client_that_is_named_twice_is_refused() -> None:
    known = registry(process.binary_path())
    with pytest.raises(UsageError, match="client 'native' is named twice") as refused:
        matching_clients(["native", "go/gomemcache", "native"], known)
    assert refused.value.remedy.startswith("name it once;")
    assert "--client native --set twice=native`" in refused.value.remedy
    assert matching_clients(["go/*", "go/gomemcache"], known).count("go/gomemcache") == 1
