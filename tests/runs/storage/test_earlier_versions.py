"""Runs that earlier versions stored are read: reports, history and comparisons take them.

Each folder in `earlier_versions/` is a store that the version of that name wrote, with paths of
its machine replaced. `-rounds`: its run was played in rounds.
"""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import Inside
from tests.report.built_once import build_once
from tests.web.serving import served

BUILT: dict[str, Any] = {}
STORES = sorted((Path(__file__).parent / "earlier_versions").iterdir())


@pytest.fixture(autouse=True)
def reports_once(monkeypatch: pytest.MonkeyPatch) -> None:
    build_once(monkeypatch, BUILT)


@pytest.fixture(params=STORES, ids=lambda path: path.name)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, since a store that is read gets an index."""
    return shutil.copytree(request.param, tmp_path / "results")


def test_its_report_has_every_trial(store: Path, inside: Inside) -> None:
    ended = inside("report", "--runs", str(store), "--format", "json")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in store.glob("*/*.jsonl"))
    assert len(report["trials"]) == lines
    assert all(row["summary"]["valid"] for group in report["groups"] for row in group["rows"])


def test_every_form_of_its_report_is_made(store: Path, inside: Inside) -> None:
    for form in ("table", "markdown", "csv", "jmh", "openmetrics", "go-bench"):
        ended = inside("report", "--runs", str(store), "--format", form)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout


def test_its_pictures_are_described(store: Path, inside: Inside, tmp_path: Path) -> None:
    for form in ("html", "vega-lite"):
        ended = inside("report", "--runs", str(store), "--format", form, "--out", f"made-{form}")
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / f"made-{form}").exists()


def test_a_figure_of_it_is_explained(store: Path, inside: Inside) -> None:
    (run,) = store.iterdir()
    cell = json.loads((run / "outcomes.jsonl").read_text("utf-8").splitlines()[0])["trial"]["cell"]
    words = [f"--{field}={name}" for field, name in cell.items()]
    ended = inside("explain", run.name, *words, "--runs", str(store))
    assert ended.returncode == 0, ended.stderr
    assert cell["client"] in ended.stdout


def test_a_finished_run_is_resumed(inside: Inside, tmp_path: Path) -> None:
    """It has all of its trials: nothing is played, and its answer is printed."""
    store = shutil.copytree(STORES[0], tmp_path / "results")
    (run,) = store.iterdir()
    before = (run / "outcomes.jsonl").read_bytes()
    ended = inside("run", "--resume", run.name, "--runs", str(store))
    assert ended.returncode == 0, ended.stderr
    assert (run / "outcomes.jsonl").read_bytes() == before


def test_its_pages_are_shown(store: Path) -> None:
    (run,) = store.iterdir()
    with served(store) as visitor:
        for page in ("/runs", f"/runs/{run.name}", f"/runs/{run.name}/report", "/history"):
            answer = visitor.get(page)
            assert (answer.status, run.name in answer.text) == (200, page != "/history"), page


def test_its_history_has_the_run(store: Path, inside: Inside) -> None:
    (run,) = store.iterdir()
    client = json.loads((run / "run.json").read_text("utf-8"))["experiment"]["clients"][0]
    ended = inside("history", client, "--runs", str(store))
    assert ended.returncode == 0, ended.stderr
    assert run.name in ended.stdout


def test_it_is_compared(store: Path, inside: Inside) -> None:
    """With a copy of itself: no figure differs."""
    (run,) = store.iterdir()
    shutil.copytree(run, store / "again")
    ended = inside("compare", run.name, "again", "--runs", str(store), "--format", "csv")
    assert ended.returncode == 0, ended.stderr
    header, *rows = csv.reader(ended.stdout.splitlines())
    ratios = [float(row[header.index("ratio")]) for row in rows if row[header.index("ratio")]]
    assert ratios
    assert set(ratios) == {1.0}


def test_it_is_exported_and_imported(store: Path, inside: Inside, tmp_path: Path) -> None:
    run = next(path for path in store.iterdir() if path.is_dir()).name
    archive = tmp_path / "stored.zip"
    ended = inside("export", run, str(archive), "--runs", str(store))
    assert ended.returncode == 0, ended.stderr
    ended = inside("import", str(archive), "--runs", str(tmp_path / "elsewhere"))
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "elsewhere" / run / "outcomes.jsonl").is_file()
