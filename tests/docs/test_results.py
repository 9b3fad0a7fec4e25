"""The book of results: every picture and figure comes from a run that is stored beside the page."""

import csv
import functools
import importlib
import re
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from cachemark.model.published import published_files
from cachemark.report.model import Report
from cachemark.runs.storage.archive import import_run
from cachemark.runs.storage.store import Run
from tests.cli.in_process import Inside
from tests.conftest import ROOT

DOCS = ROOT / "docs"
MAX_BYTES = 10_000_000


@functools.cache
def _book() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("results")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@functools.cache
def _drawn() -> dict[Path, bytes]:
    return _book().draw([name for name in _book().SUITES if _book().archive_of(name).exists()])


@pytest.mark.slow("it draws all pictures of the book")
@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/data/published.csv"])
def test_page_says_what_its_archives_say(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == _drawn()[ROOT / page].decode()


@pytest.mark.slow("it draws all pictures of the book")
def test_each_picture_is_drawn_from_an_archive() -> None:
    pictures = {path for path in _drawn() if path.suffix == ".png"}
    assert pictures == set((DOCS / "pictures").iterdir())
    assert all(_drawn()[picture].startswith(b"\x89PNG") for picture in pictures)


def test_each_shown_picture_exists() -> None:
    shown = re.findall(r"\]\(docs/(pictures/[^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert shown
    assert all((DOCS / picture).is_file() for picture in shown)


def test_archives_are_small_and_name_no_home_folder() -> None:
    archives = list((DOCS / "runs").iterdir())
    assert sum(archive.stat().st_size for archive in archives) <= MAX_BYTES
    for archive in archives:
        with zipfile.ZipFile(archive) as opened:
            assert not re.search(rb"/home/|/work/", opened.read("outcomes.jsonl"))
            assert not re.search(rb"/home/|/work/", opened.read("run.json"))


def _published_rows() -> list[dict[str, str]]:
    with (DOCS / "data" / "published.csv").open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table, strict=True))


def _tables(suite: str, loads: set[str]) -> set[str]:
    """The titles of the published tables of a suite with a cell of these workloads and loads."""
    return {
        table.title
        for page in published_files(suite)
        for table in page.table
        if any(row.is_published and f"{row.workload} {row.load}" in loads for row in table.row)
    }


@pytest.mark.parametrize("suite", ["java-clients", "inprocess-vs-network"])
def test_runs_of_the_book_plan_each_published_cell(suite: str, inside: Inside) -> None:
    book = _book().SUITES[suite]
    planned: set[tuple[str, ...]] = set()
    for options in (book.options, *book.pages):
        said = inside("run", suite, *options, "--dry-run")
        assert said.returncode == 0, said.stderr
        lines = [line.split() for line in said.stdout.splitlines() if " × " in line]
        planned |= {(words[2], words[4], words[5]) for words in lines}
    published = {
        (row.client, row.workload, row.load)
        for page in published_files(suite)
        for table in page.table
        for row in table.row
        if row.is_published
    }
    assert len(published) > 20
    assert published <= planned


@pytest.mark.parametrize("suite", ["java-clients", "inprocess-vs-network", "ruby-clients"])
def test_each_published_table_of_a_played_load_is_shown(suite: str, tmp_path: Path) -> None:
    archives = [_book().archive_of(suite), *_book().page_archives_of(suite)]
    played = {
        f"{outcome.trial.cell.workload} {outcome.trial.cell.load}"
        for archive in archives
        if archive.exists()
        for outcome in import_run(archive, tmp_path / archive.stem)[0].outcomes()
    }
    shown = {
        row["table"].split(", against")[0] for row in _published_rows() if row["suite"] == suite
    }
    assert shown == _tables(suite, played)


def test_each_published_cell_was_played() -> None:
    rows = _published_rows()
    played = [row for row in rows if ", here" in row["figure"] and "×" not in row["figure"]]
    assert {row["suite"] for row in played} >= {"java-clients", "ruby-clients", "server-modes"}
    assert [row["cell"] for row in played if row["value"] == "–"] == []


@pytest.mark.slow("it draws all pictures of the book")
def test_changed_figure_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a report whose answers differ must not give the stored page."""
    book = _book()
    true = book.load_report

    def changed(run: Run) -> Report:
        return msgspec.structs.replace(true(run), answers=["x is first."])

    monkeypatch.setattr(book, "load_report", changed)
    assert book.draw(["quick"])[DOCS / "results.md"] != _drawn()[DOCS / "results.md"]
