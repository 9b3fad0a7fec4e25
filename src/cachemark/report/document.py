"""A document: what a report, a comparison or a trace's traffic says, before it is drawn.

Each of them is made into one document, and `report.forms` lists what draws any document.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec


class TableColumn(msgspec.Struct, frozen=True):
    """A column by its title, which is shown, and its `id`, by which it is found.

    `words`: text, not figures; `folds`: text of any length, on several lines. A narrow terminal
    drops columns without a cell, then the column whose `spare` is 1, then the next; 0: never.
    """

    title: str
    id: str = ""
    words: bool = False
    spare: int = 0
    folds: bool = False


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


# Specifications are JSON: their shape is Vega-Lite's affair.
Spec = dict[str, Any]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A plot as data. `alt` describes it for readers who cannot see it; `table` has every figure.

    `subtitle` names workload, load and server, if the title does not.
    """

    name: str
    title: str
    caption: str
    alt: str
    spec: Spec
    table: Table
    subtitle: str = ""


# The pictures of a part, for a width of a page.
Plots = Callable[[int], Sequence[Plot]]


class DocumentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document, in this order: title, plots, table, paragraphs, list.

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
    plots: Plots | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A page's title, the lines and facts below it, warnings, and the parts.

    `kind` says what kind of document it is. A console shows the parts only; where there are facts,
    it begins with them and the title, and it ends with the warnings.
    """

    title: str
    kind: str = ""
    lines: list[str] = []
    facts: list[tuple[str, str]] = []
    warnings: list[str] = []
    parts: list[DocumentPart]

    def parts_on(self, medium: Literal["page", "console"]) -> list[DocumentPart]:
        """The parts that a page or a console shows, without empty ones."""
        parts = self.parts
        if medium == "console":
            facts = " · ".join(f"{name}: {value}" for name, value in self.facts)
            head = [DocumentPart(items=[self.title, facts])] if facts else []
            parts = [*head, *parts, DocumentPart(items=self.warnings)]
        return [
            part
            for part in parts
            if part.on in ("both", medium) and (part.table or part.paragraphs or part.items)
        ]
