"""`cachemark history` on a store."""

import json
from pathlib import Path

import pytest

from tests.builders.stored_runs import kept, made_header, trials
from tests.cli.in_process import Inside


@pytest.fixture(autouse=True)
def runs(tmp_path: Path) -> None:
    kept(tmp_path / "results", made_header("first", 1), trials("a", 2000))
    kept(tmp_path / "results", made_header("second", 2), trials("a", 1000))


def test_runs_then_a_client(inside: Inside) -> None:
    listed = inside("history")
    assert listed.returncode == 0, listed.stderr
    assert "first" in listed.stdout
    assert "cachemark history CLIENT" in listed.stdout
    told = inside("history", "a", "--figure", "p50")
    assert "ratio to previous" in told.stdout
    assert "no interval and no answer" in " ".join(told.stdout.split())
    document = json.loads(inside("history", "a", "--rebuild", "--format", "json").stdout)
    assert len(document["lines"][0]["entries"]) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["b"], "no such client"),
        (["a", "--last", "0"], "at least 1"),
        (["--runs", "elsewhere"], "no such folder"),
    ],
)
def test_what_cannot_be_meant_exits_with_2(inside: Inside, arguments: list[str], text: str) -> None:
    told = inside("history", *arguments)
    assert (told.returncode, told.stdout) == (2, "")
    assert text in told.stderr
