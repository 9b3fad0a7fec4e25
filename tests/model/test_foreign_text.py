"""Text of strangers: harmless wherever it goes, readable, and left alone where it was harmless."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.model.foreign_text import Target, clean, clean_all, json_escaped
from cachemark.model.outcome import Cell
from tests.builders.hostile_text import CORPUS, FORMULAS, MARKDOWN, is_unsafe

TARGETS: tuple[Target, ...] = ("plain", "csv", "markdown")
# Any characters, also halves of surrogate pairs, and pieces that mean something somewhere.
TEXTS = st.lists(
    st.one_of(st.text(max_size=5), st.sampled_from(CORPUS), st.characters(categories=["Cs"])),
    max_size=4,
).map("".join)


@pytest.mark.parametrize("target", TARGETS)
@given(text=TEXTS)
def test_cleaning_removes_all_unsafe_characters_and_is_idempotent(
    target: Target, text: str
) -> None:
    cleaned = clean(text, target)
    assert not is_unsafe(cleaned)
    assert clean(cleaned, target) == cleaned


@given(text=TEXTS)
def test_no_csv_cell_is_a_formula(text: str) -> None:
    cell = clean(text, "csv").lstrip()
    assert not cell.startswith(("=", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "|", "%"))
    if cell.startswith(("+", "-")):
        float(cell)


@given(text=TEXTS)
def test_markdown_has_neither_html_nor_links_nor_scripts(text: str) -> None:
    cleaned = clean(text, "markdown")
    assert not re.search(r"<[A-Za-z/!?]", cleaned)
    assert not re.search(r"(?<!\\)(?:\\\\)*\]\s*[(:]", cleaned)
    assert not re.search(r"(?i)\b(java|vb)script\s*:", cleaned)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_a_leading_quote(text: str) -> None:
    assert clean(text, "csv").startswith("'")


@pytest.mark.parametrize("text", MARKDOWN[:-2])
def test_active_markdown_is_escaped(text: str) -> None:
    assert clean(text, "markdown") != text


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "native?uring=yes",
        "1.6.45",
        "p99 < 1 ms",
        "a → b · c – 3 µs",
        "x\n\ty",
        "ключ",
        "[a] b",
        "👩\u200d🔬",
        "می\u200cخواهم",
    ],
)
def test_harmless_text_is_unchanged(target: Target, text: str) -> None:
    assert clean(text, target) == text


@pytest.mark.parametrize("text", ["-1", "+0.5", "-1.5e-07", "-inf", "nan"])
def test_numbers_are_not_quoted_as_formulas(text: str) -> None:
    assert clean(text, "csv") == text


def test_unsafe_characters_become_readable_escapes() -> None:
    assert clean("\x1b[2J\u202e\ufffe\ud800\r\n") == "\\x1b[2J\\u202e\\ufffe\\ud800\n"


@given(text=TEXTS.filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_escaped_json_decodes_to_the_same_values(text: str) -> None:
    escaped = json_escaped(json.dumps([text], ensure_ascii=False))
    assert not is_unsafe(escaped)
    assert json.loads(escaped) == [text]


def test_texts_inside_nested_values_are_cleaned() -> None:
    cell = Cell(client="\x1b", server="s", workload="w", load="l")
    value = {"\x00": [(cell, 1, None)]}
    cleaned = clean_all(value)
    assert cleaned == {
        "\\x00": [(Cell(client="\\x1b", server="s", workload="w", load="l"), 1, None)]
    }


@given(text=TEXTS)
def test_a_csv_reader_reads_the_same_cell(text: str) -> None:
    out = io.StringIO()
    csv.writer(out).writerow([clean(text, "csv"), "end"])
    assert next(csv.reader(io.StringIO(out.getvalue(), newline="")))[0] == clean(text, "csv")
