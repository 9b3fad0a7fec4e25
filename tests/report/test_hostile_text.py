"""Every form of a run, a comparison and a history, made of names that mean harm."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from cachemark.report.compare import RENDERERS as COMPARE_FORMS
from cachemark.report.formats import format_names
from cachemark.report.history import RENDERERS as HISTORY_FORMS
from tests.builders.hostile_text import CORPUS, TERMINAL, XML, hostile_run, is_unsafe
from tests.builders.stored_runs import kept
from tests.cli.in_process import Inside
from tests.report.built_once import build_once

PICTURES = ("svg", "png", "picture")
# Each of its plots is drawn four times: a few texts have to do.
DRAWN = (*PICTURES, "html")
JSON_FORMS = (
    "json", "vega-lite", "jmh-json", "google-benchmark", "hyperfine", "bencher", "github-action",
)  # fmt: skip
BUILT: dict[str, Any] = {}
VERBS = {"history": HISTORY_FORMS, "compare": COMPARE_FORMS}


def stored(root: Path, texts: tuple[str, ...]) -> None:
    """Two runs of strangers in the folder of runs, `made` and `made-again`."""
    head, outcomes = hostile_run(texts)
    kept(root / "results", head, outcomes)
    again = msgspec.structs.replace(head, id="made-again", created_at="2026-02\x1b[2J\x07")
    kept(root / "results", again, outcomes)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of all texts, which the tests only read."""
    root = tmp_path_factory.mktemp("corpus")
    stored(root, CORPUS)
    return root


@pytest.fixture(autouse=True)
def reports_once(monkeypatch: pytest.MonkeyPatch) -> None:
    build_once(monkeypatch, BUILT)


def written(inside: Inside, form: str, run: str, folder: Path) -> list[bytes]:
    """The files of a form."""
    out = folder / ("out.png" if form == "picture" else "out")
    if form != "picture":
        out.mkdir()
    said = inside("report", run, "--format", form, "--out", str(out))
    assert said.returncode == 0, said.stderr
    assert not is_unsafe(said.stdout + said.stderr)
    return [out.read_bytes()] if out.is_file() else [p.read_bytes() for p in out.iterdir()]


@pytest.mark.parametrize("form", format_names())
def test_every_form_of_a_report(
    tmp_path: Path, corpus: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    if form in DRAWN:
        stored(tmp_path, (*TERMINAL[:2], *XML[:3]))
    else:
        monkeypatch.chdir(corpus)
    files = written(inside, form, "made", tmp_path)
    assert files
    for content in files:
        if form in ("png", "picture"):
            assert content.startswith(b"\x89PNG")
            continue
        text = content.decode("utf-8")
        assert not is_unsafe(text)
        check(form, text)


@pytest.mark.parametrize(
    ("verb", "form"),
    [(verb, form) for verb, forms in VERBS.items() for form in forms],
)
def test_every_form_of_other_verbs(
    corpus: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch, verb: str, form: str
) -> None:
    monkeypatch.chdir(corpus)
    names = ["made", "made-again"] if verb == "compare" else ["*"]
    said = inside(verb, *names, "--format", form)
    assert said.returncode == 0, said.stderr
    assert not is_unsafe(said.stdout + said.stderr)
    check(form, said.stdout)


def test_the_list_of_runs(tmp_path: Path, inside: Inside) -> None:
    stored(tmp_path, CORPUS)
    bad = tmp_path / "results" / "bad"
    bad.mkdir()
    (bad / "run.json").write_text('{"\x1b[2J": 1}', encoding="utf-8")
    for form in ("table", "markdown", "csv", "json"):
        said = inside("history", "--format", form)
        assert said.returncode == 0, said.stderr
        assert not is_unsafe(said.stdout + said.stderr)


def check(form: str, text: str) -> None:
    """Texts that must not be in a form."""
    if form == "markdown":
        assert not re.search(r"<[A-Za-z/!?]|(?<!\\)(?:\\\\)*\]\s*[(:]|(?i:javascript\s*:)", text)
    elif form == "csv":
        cells = [cell.lstrip() for row in csv.reader(io.StringIO(text)) for cell in row]
        assert [cell for cell in cells if cell[:1] in tuple("=+-@|%\uff1d") and cell[:1]] == []
    elif form in JSON_FORMS:
        json.loads(text)
    elif form in ("svg", "junit"):
        ElementTree.fromstring(text)
    elif form == "html":
        assert "<script>1" not in text
