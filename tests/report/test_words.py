"""Sentences on a terminal: lines end between words, and a command is never divided."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.report import html
from cachemark.report.build import build
from cachemark.report.console import plain_console, print_words, word_lines
from cachemark.report.formats import RENDERERS
from cachemark.report.plots.summary_picture import provenance
from tests.builders.outcomes import experiment, header, measured, numbered

COMMAND = "cachemark compare 2026-11-27T00-41-42-quick --client python/pylibmc --client native"
TEXTS = st.lists(
    st.sampled_from(["a", "sitting", "1.41 (1.37–1.45)", "`make bench`", COMMAND, "x" * 90, "–"])
).map(" ".join)


@given(text=TEXTS, width=st.integers(20, 120))
def test_no_word_is_lost_and_only_whole_ones_are_longer(text: str, width: int) -> None:
    lines = word_lines(text, width)
    assert " ".join(lines).split() == text.split()
    whole = ("x" * 90, "`make bench`")
    for line in lines:
        assert len(line) <= width or line.startswith("cachemark compare") or line in whole


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_command_stays_on_one_line(width: int) -> None:
    text = f"Two sittings more: {COMMAND}, or `{COMMAND}`."
    found = [line for line in word_lines(text, width) if "cachemark" in line]
    assert [COMMAND in line for line in found] == [True, True]


def test_a_set_up_command_keeps_its_variable_and_language() -> None:
    text = "no such library: CACHEMARK_GEMS=memcached cachemark setup ruby, or build it"
    assert "CACHEMARK_GEMS=memcached cachemark setup ruby, or" in word_lines(text, 50)


def test_a_list_keeps_its_indentation() -> None:
    lines = word_lines("Left out:\n  one two three four five six seven", 20)
    assert lines == ["Left out:", "  one two three four", "  five six seven"]


def test_a_pipe_has_each_sentence_on_one_line() -> None:
    out = io.StringIO()
    print_words(plain_console(file=out, width=20), "word " * 40)
    assert len(out.getvalue().splitlines()) == 1


def test_a_terminal_has_no_longer_line_and_no_markup() -> None:
    out = io.StringIO()
    console = plain_console(file=out, width=30, force_terminal=True, no_color=True)
    print_words(console, "[bold]word[/] " * 40)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 30
    assert "[bold]word[/]" in lines[0]


def test_one_block_is_no_plural_in_any_form() -> None:
    outcomes = numbered([measured(client, 0, 1000) for client in ("a", "b")])
    report = build(header(experiment(["a", "b"], blocks=1)), outcomes)
    texts = [provenance(report), html.render(report, None), RENDERERS["markdown"](report, None)]
    assert all("1 block" in text and "1 blocks" not in text for text in texts)
