"""Every form of a run, a comparison and a history, made of names that mean harm."""

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from cachemark.report.compare import RENDERERS as COMPARE_FORMS
from cachemark.report.formats import format_names
from cachemark.report.history import RENDERERS as HISTORY_FORMS
from tests.builders.hostile_text import CORPUS, TERMINAL, XML, hostile_run, is_unsafe
from tests.builders.stored_runs import kept
from tests.cli.in_process import Inside

PICTURES = ("svg", "png", "picture")
# Each of its plots is drawn four times: a few texts have to do.
DRAWN = (*PICTURES, "html")
JSON_FORMS = (
    "json", "vega-lite", "jmh-json", "google-benchmark", "hyperfine", "bencher", "github-action",
)  # fmt: skip
VERBS = {"history": HISTORY_FORMS, "compare": COMPARE_FORMS}


def stored(root: Path, texts: tuple[str, ...]) -> str:
    """Two runs of strangers in the folder of runs; the name of one."""
    head, outcomes = hostile_run(texts)
    kept(root / "results", head, outcomes)
    again = msgspec.structs.replace(head, id="made-again", created_at="2026-02\x1b[2J\x07")
    kept(root / "results", again, outcomes)
    return head.id


def written(inside: Inside, form: str, run: str) -> list[bytes]:
    """The files of a form."""
    out = Path("out.png") if form == "picture" else Path("out")
    if form != "picture":
        out.mkdir()
    said = inside("report", run, "--format", form, "--out", str(out))
    assert said.returncode == 0, said.stderr
    assert not is_unsafe(said.stdout + said.stderr)
    return [out.read_bytes()] if out.is_file() else [p.read_bytes() for p in out.iterdir()]


@pytest.mark.parametrize("form", format_names())
def test_every_form_of_a_report(tmp_path: Path, inside: Inside, form: str) -> None:
    run = stored(tmp_path, (*TERMINAL[:2], *XML[:3]) if form in DRAWN else CORPUS)
    files = written(inside, form, run)
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
def test_every_form_of_other_verbs(tmp_path: Path, inside: Inside, verb: str, form: str) -> None:
    run = stored(tmp_path, CORPUS)
    names = [run, "made-again"] if verb == "compare" else ["*"]
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
    """What must not be in a form."""
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
