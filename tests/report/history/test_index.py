"""The index: made from the folders alone, kept up to date, made anew where it cannot be trusted."""

import os
import sqlite3
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.statistics import FIGURES, over_trials
from cachemark.model.errors import UsageError
from cachemark.model.hosts import CoordinatorPlace, Host, Hosts, Role
from cachemark.model.run_header import HostsOfRun
from cachemark.report.history import RunIndex
from cachemark.report.history.index import VERSION
from cachemark.runs.resilience.stored import RunFolder
from cachemark.runs.storage.store import INDEX
from tests.builders.stored_runs import kept, made_header, trials


def counts(root: Path, *, rebuild: bool = False) -> dict[str, int]:
    """Folder → trials, as the index has them."""
    query = "SELECT folder, count(trial) AS n FROM run LEFT JOIN trial USING (folder) GROUP BY 1"
    with RunIndex(RunFolder(root), rebuild=rebuild) as index:
        return {row["folder"]: row["n"] for row in index.rows(query)}


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in the run folders, and when it was written."""
    files = [path for path in root.rglob("*") if path.is_file() and path.name != INDEX]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_figures_are_those_of_the_report(tmp_path: Path) -> None:
    outcomes = trials("a", 500, 3)
    kept(tmp_path, made_header("one"), outcomes)
    with RunIndex(RunFolder(tmp_path)) as index:
        rows = {row["figure"]: row["value"] for row in index.rows("SELECT * FROM pool")}
    shown = {name: over_trials(outcomes, figure) for name, figure in FIGURES.items()}
    assert rows == pytest.approx({name: of.value for name, of in shown.items() if of})
    assert "rate" in rows


def test_what_does_not_count_has_no_figure(tmp_path: Path) -> None:
    bad = [msgspec.structs.replace(t, verdict="INVALID", reasons=["x"]) for t in trials("a", 500)]
    kept(tmp_path, made_header("one"), bad)
    with RunIndex(RunFolder(tmp_path)) as index:
        (row, *_) = index.rows("SELECT * FROM trial")
        assert list(index.rows("SELECT * FROM pool")) == []
    assert (row["valid"], row["reason"]) == (0, "x")


def test_new_changed_and_removed_runs_are_noticed(tmp_path: Path) -> None:
    first = kept(tmp_path, made_header("one"), trials("a", 500, 2))
    assert counts(tmp_path) == {"one": 2}
    kept(tmp_path, made_header("two"), trials("a", 500, 3))
    with first:
        first.append([trials("b", 500, 3)[2]])
    assert counts(tmp_path) == {"one": 3, "two": 3}
    for file in first.folder.iterdir():
        file.unlink()
    first.folder.rmdir()
    assert counts(tmp_path) == {"two": 3}


def test_several_new_runs_are_named_while_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        kept(tmp_path, made_header(name), trials("a", 500, 2))
    texts: list[str] = []
    for _ in range(2):
        with RunIndex(RunFolder(tmp_path), progress=texts.append):
            assert texts == ["reading run 1 of 2: one", "reading run 2 of 2: two"]


def test_the_store_is_only_read(tmp_path: Path) -> None:
    kept(tmp_path, made_header("one"), trials("a", 500, 2))
    before = content(tmp_path)
    counts(tmp_path)
    counts(tmp_path, rebuild=True)
    assert content(tmp_path) == before


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    run = kept(tmp_path, made_header("one"), trials("a", 500, 2))
    counts(tmp_path)
    path = run.folder / "outcomes.jsonl"
    facts = path.stat()
    path.write_bytes(b"?" * (facts.st_size - 1) + b"\n")  # as long, as old, and nonsense
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert counts(tmp_path) == {"one": 2}
    assert counts(tmp_path, rebuild=True) == {"one": 0}


@pytest.mark.parametrize("damage", ["text", "torn", "older", "folder"])
def test_an_index_that_cannot_be_trusted_is_made_anew(tmp_path: Path, damage: str) -> None:
    kept(tmp_path, made_header("one"), trials("a", 500, 2))
    counts(tmp_path)
    path = tmp_path / INDEX
    if damage == "text":
        path.write_text("not a database, and longer than a page\n" * 200)
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "older":
        with sqlite3.connect(path) as old:
            old.execute(f"PRAGMA user_version = {VERSION + 1}")
            old.execute("UPDATE trial SET client = 'nobody'")
    else:
        path.unlink()
        path.mkdir()
    assert counts(tmp_path) == {"one": 2}
    with RunIndex(RunFolder(tmp_path)) as index:
        assert {row[0] for row in index.rows("SELECT client FROM trial")} == {"a"}


def test_an_index_that_somebody_holds_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, made_header("one"), trials("a", 500, 2))
    monkeypatch.setattr("cachemark.report.history.index._PATIENCE_S", 0.05)
    other = sqlite3.connect(tmp_path / INDEX, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert counts(tmp_path) == {"one": 2}
    other.close()


def test_an_unreadable_run_does_not_hide_the_others(tmp_path: Path) -> None:
    kept(tmp_path, made_header("one"), trials("a", 500, 2))
    broken = kept(tmp_path, made_header("two"), trials("a", 500, 2))
    (broken.folder / "run.json").write_text("{}")
    later = kept(tmp_path, made_header("three"), trials("a", 500, 2))
    header = (later.folder / "run.json").read_text().replace('"format":1', '"format":99')
    (later.folder / "run.json").write_text(header)
    with RunIndex(RunFolder(tmp_path)) as index:
        problems = {row["folder"]: row["problem"] for row in index.rows("SELECT * FROM run")}
    assert problems["one"] == ""
    assert "not a run" in problems["two"]
    assert "format 99" in problems["three"]


def test_no_store_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        RunIndex(RunFolder(tmp_path / "none"))


def test_another_placement_of_hosts_is_another_machine(tmp_path: Path) -> None:
    placements: dict[str, list[Role] | None] = {
        "one": None, "two": ["client"], "three": ["client", "load"]
    }  # fmt: skip
    for name, roles in placements.items():
        header = made_header(name)
        if roles is not None:
            hosts = [Host(name=role, roles=[role], address="10.0.0.1") for role in roles]
            plan = Hosts(coordinator=CoordinatorPlace(address="10.0.0.9", port=1), hosts=hosts)
            header = msgspec.structs.replace(header, hosts=HostsOfRun(plan=plan, facts={}))
        kept(tmp_path, header, trials("a", 500))
    with RunIndex(RunFolder(tmp_path)) as index:
        rows = {row["folder"]: row["machine"] for row in index.rows("SELECT * FROM run")}
    assert "hosts" not in rows["one"]
    assert rows["two"] == f"{rows['one']}; hosts: client client"
    assert rows["three"] == f"{rows['one']}; hosts: client client, load load"
