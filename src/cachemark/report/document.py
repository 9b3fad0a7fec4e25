"""A document: what a report, a comparison, a history or JMH's figures say, before it is drawn.

Each of them is made into one document. `report.terminal` and `report.markdown` draw any document.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec


class TableColumn(msgspec.Struct, frozen=True):
    """A column by its title, which is shown, and its `id`, by which it is found.

    `words`: text, not figures. A narrow terminal first drops the column whose `spare` is 1, then
    the next; 0: never.
    """

    title: str
    id: str = ""
    words: bool = False
    spare: int = 0


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Columns and rows. The first column is text; with `prose`, all columns are text."""

    columns: list[TableColumn]
    rows: list[list[str]]
    prose: bool = False

    @property
    def titles(self) -> list[str]:
        """The titles above the columns."""
        return [column.title for column in self.columns]

    def only(self, chosen: Sequence[int]) -> "Table":
        """The table with these columns alone."""
        return Table(
            columns=[self.columns[at] for at in chosen],
            rows=[[row[at] for at in chosen] for row in self.rows],
            prose=self.prose,
        )


class Toned(str):
    """A word of a cell, with the style in which a terminal shows it, such as `bold red`."""

    def __new__(cls, text: str, style: str) -> "Toned":
        """The word with its style."""
        toned = super().__new__(cls, text)
        toned.style = style
        return toned

    style: str


def plain_table(columns: Sequence[str], rows: list[list[str]], *, prose: bool = False) -> Table:
    """A table of which every column is shown, and none is asked for."""
    return Table(columns=[TableColumn(title) for title in columns], rows=rows, prose=prose)


class DocumentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document, in this order: title, table, paragraphs, list.

    With `strong`, the paragraphs are the main statement. With `whole`, a narrow terminal shows the
    table as several, instead of without some columns. `on`: a page is read from its first line, the
    text on a console from its last line, so the order differs where that matters.
    """

    title: str = ""
    table: Table | None = None
    whole: bool = False
    paragraphs: list[str] = []
    strong: bool = False
    items: list[str] = []
    on: Literal["both", "page", "console"] = "both"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A page's title, the lines below it, and the parts. A console shows the parts only."""

    title: str
    lines: list[str] = []
    parts: list[DocumentPart]

    def parts_on(self, medium: Literal["page", "console"]) -> list[DocumentPart]:
        """The parts that a page or a console shows, without empty ones."""
        return [
            part
            for part in self.parts
            if part.on in ("both", medium) and (part.table or part.paragraphs or part.items)
        ]
