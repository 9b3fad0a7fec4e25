"""Tables of figures in a narrow terminal: figures stay whole, and names stand beside each part."""

import pytest

from cachemark.report.document import Document, DocumentPart, Table, TableColumn, plain_table
from cachemark.report.terminal import draw, narrow_parts

NAMES = ["measureBinaryFolsomMultiget, published", "a, php/memcached?compression=on"]
FIGURES = [f"{number}.123456" for number in range(12)]
WIDE = plain_table(
    columns=["cell", *[f"column {number} of twelve" for number in range(12)]],
    rows=[[name, *FIGURES] for name in NAMES],
)


def printed(table: Table, width: int) -> str:
    part = DocumentPart(title="t", table=table, whole=True, items=["a note"])
    return draw(Document(title="", parts=[part]), width)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200, 400])
def test_each_figure_is_whole_at_any_width(width: int) -> None:
    text = printed(WIDE, width)
    for figure in FIGURES:
        assert text.split().count(figure) == len(NAMES), (figure, text)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 80, 120])
def test_each_part_has_the_names_and_no_column_is_lost(width: int) -> None:
    found = narrow_parts(WIDE, width)
    assert len(found) > 1
    assert [column for part in found for column in part.titles[1:]] == WIDE.titles[1:]
    assert all([row[0] for row in part.rows] == NAMES for part in found)


def test_what_fits_is_one_table_with_whole_headings() -> None:
    (part,) = narrow_parts(WIDE, 400)
    assert part == WIDE
    assert "column 11 of twelve" in printed(WIDE, 400)


def test_a_long_text_among_figures_is_folded() -> None:
    client = "php/memcached?compression=on&compression_threshold=100"
    table = plain_table(columns=["cell", "ops/s", "client"], rows=[["a", "12.3 k", client]])
    text = printed(table, 40)
    assert "12.3 k" in text
    assert client in "".join(text.split())


def test_empty_columns_give_way_before_a_name_is_cut() -> None:
    name = "python/meta-memcache@1.2.3?option=of-a-client"
    columns = [TableColumn(title) for title in ("client", "ops/s", "of the fastest", "p99")]
    part = DocumentPart(table=Table(columns=columns, rows=[[name, "12.3 k", "–", "–"]]))
    for width, left in ((80, "of the fastest p99"), (70, "of the fastest"), (60, "")):
        heading, row = draw(Document(title="", parts=[part]), width).splitlines()
        assert " ".join(heading.split()) == f"client ops/s {left}".strip()
        assert row.split()[:3] == [name, "12.3", "k"]


def test_a_table_without_rows_has_its_headings() -> None:
    assert narrow_parts(plain_table(columns=["cell", "ops/s"], rows=[]), 80)
    assert "ops/s" in printed(plain_table(columns=["cell", "ops/s"], rows=[]), 80)


@pytest.mark.parametrize("width", [60, 80])
def test_no_name_is_broken_where_words_can_give_way(width: int) -> None:
    server = "embedded:io=blocking,threads=2"
    seen = "20 connections took its threads from 6 to 26 and more of the same"
    table = plain_table(["level", "of", "seen"], [["server threads", server, seen]], prose=True)
    assert server in printed(table, width).split()
