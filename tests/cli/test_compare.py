"""`cachemark compare` on runs that are kept."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.builders.stored_runs import in_turns, kept, made_header, trials
from tests.cli.in_process import Inside


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    root = tmp_path / "results"
    kept(root, made_header("old", 1), [*trials("a", 2000), *trials("b", 2000)])
    kept(root, made_header("slower", 2), [*trials("a", 1000), *trials("b", 2000)])
    kept(root, made_header("z-same", 3), [*trials("a", 2000), *trials("b", 2000)])
    return root


def test_a_regression_fails_where_it_is_asked_to(runs: Path, inside: Inside) -> None:
    assert runs.exists()
    slower = ("compare", "slower", "--client", "b", "--client", "a")
    told = inside(*slower)
    assert told.returncode == 0, told.stderr
    assert "worse" in told.stdout
    assert inside(*slower, "--fail-on-regression").returncode == 1
    faster = ("compare", "slower", "--client", "a", "--client", "b")
    assert inside(*faster, "--fail-on-regression").returncode == 0
    same = ("compare", "old", "--client", "a", "--client", "b")
    assert inside(*same, "--fail-on-regression").returncode == 0
    # 25 % less is as far from 1 as 33 % more.
    kept(runs, made_header("third", 4), [*trials("a", 1500), *trials("b", 2000)])
    third = ("compare", "third", "--client", "b", "--client", "a", "--figure", "rate")
    assert inside(*third, "--margin", "30", "--fail-on-regression").returncode == 1
    assert inside(*third, "--margin", "40", "--fail-on-regression").returncode == 0


def test_the_gate_decides_and_its_files_are_written(
    runs: Path, inside: Inside, tmp_path: Path
) -> None:
    slower = ("compare", "slower", "--client", "b", "--client", "a")
    files = ("--junit", "junit.xml", "--markdown", "comment.md")
    ended = inside(*slower, "--gate", "rate", *files)
    assert ended.returncode == 1
    assert "Gate failed" in ended.stdout
    assert 'failures="1"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert "Gate failed" in (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert inside(*slower, "--gate", "server-rss").returncode == 0
    kept(runs, made_header("wild", 4), [*trials("a", 2000, 2), *trials("b", 1950, 2)])
    unsettled = ("compare", "wild", "--client", "a", "--client", "b", "--margin", "1")
    assert inside(*unsettled, "--fail-on-regression").returncode == 0
    assert inside(*unsettled, "--fail-on-inconclusive").returncode == 3


def test_runs_are_the_sample_where_runs_are_compared(runs: Path, inside: Inside) -> None:
    told = inside("compare", "old", "slower")
    assert told.returncode == 0, told.stderr
    assert "no answer" in told.stdout
    assert "worse" not in told.stdout
    for number in range(4):
        of_a = trials("a", 2000 + number)
        kept(runs, made_header(f"base-{number}", in_turns(number, second=False)), of_a)
        slow = trials("a", 1000 + number)
        kept(runs, made_header(f"head-{number}", in_turns(number, second=True)), slow)
    bases, heads = ([f"{name}-{number}" for number in range(4)] for name in ("base", "head"))
    many = inside("compare", *bases, "--with", *heads, "--fail-on-regression")
    assert many.returncode == 1, many.stderr
    assert "worse" in many.stdout
    assert inside("compare", *heads, "--with", *bases, "--fail-on-regression").returncode == 0


def test_clients_of_one_run(runs: Path, inside: Inside) -> None:
    told = inside("compare", "slower", "--client", "a", "--client", "b", "--format", "json")
    document = json.loads(told.stdout)
    assert document["paired"] is True
    assert {c["answer"] for row in document["rows"] for c in row["comparisons"]} == {"better"}
    latest = inside(
        "compare", "--client", "a", "--client", "b", "--figure", "rate", "--runs", "results"
    )
    assert latest.returncode == 0, latest.stderr
    assert "b against a" in latest.stdout
    assert runs.exists()


def test_names_of_runs_stand_in_the_title(runs: Path, inside: Inside) -> None:
    for name, rate in (("early", 1000), ("late", 1100)):
        header = msgspec.structs.replace(made_header(name, 4), name=f"the {name} build")
        kept(runs, header, trials("a", rate))
    told = inside("compare", "early", "late")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("late (the late build) against early (the early build)\n")


def test_a_cell_of_each_run(runs: Path, inside: Inside) -> None:
    told = inside("compare", "old", "slower", "--cell", "b", "--cell", "a")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("a of slower against b of old\n")
    assert "no answer" in told.stdout
    told = inside("compare", "slower", "--cell", "b · embedded", "--cell", "a")
    assert told.stdout.startswith("a against b\npaired by block")
    assert runs.exists()


def test_the_comparison_may_go_into_a_file(runs: Path, inside: Inside, tmp_path: Path) -> None:
    clients = ("--client", "b", "--client", "a")
    told = inside("compare", "slower", *clients, "--format", "markdown", "--out", "comment.md")
    assert (told.returncode, told.stdout) == (0, "")
    assert "| worse |" in (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert runs.exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["old"], "nothing to compare was named"),
        (["old", "old"], "cannot be compared with itself"),
        (["old", "slower", "z-same"], "which is compared with which"),
        (["old", "slower", "--with", "old"], "cannot be compared with itself"),
        (["old", "slower", "--fail-on-regression"], "show no regression"),
        (["old", "slower", "--fail-on-inconclusive"], "show no regression"),
        (["--play", "--figure", "rate"], "--play compares every figure"),
        (["old", "gone"], "no run 'gone'"),
        (["old", "slower", "--cell", "a"], "1 given, not two"),
        (["old", "slower", "--cell", "a", "--cell", "z"], "z: not in slower"),
        (["old", "--cell", "a", "--cell", "b", "--client", "a"], "names the cells already"),
        (["old", "slower", "--margin", "-1"], "not a percentage"),
        (["old", "slower", "--figure", "speed"], "speed"),
    ],
)
def test_what_cannot_be_meant_exits_with_2(
    runs: Path, inside: Inside, arguments: list[str], text: str
) -> None:
    told = inside("compare", *arguments)
    assert (told.returncode, told.stdout) == (2, "")
    assert text in told.stderr
    assert runs.exists()
