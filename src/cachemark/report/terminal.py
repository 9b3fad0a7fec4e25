"""A document as text for a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from cachemark.report.console import print_words, text_console, text_of
from cachemark.report.document import Document, DocumentPart, Table, Toned, plain_table


def draw(document: Document, width: int | None) -> str:
    """The document as text of at most `width` columns."""
    console = text_console(width)
    print_document(console, document, wrapped=True)
    return text_of(console)


def print_table(console: Console, columns: Sequence[str], rows: list[list[str]]) -> None:
    """Print a table of text, unless it has no rows; cells that do not fit are folded."""
    if rows:
        _print_whole(console, plain_table(columns, rows, prose=True))


def print_toned(console: Console, word: Toned, text: str) -> None:
    """Print a word in its style and a text behind it; outside of a terminal, on one line."""
    console.print(f"{_markup(word)}  {escape(text)}", soft_wrap=not console.is_terminal)


def print_document(console: Console, document: Document, *, wrapped: bool = False) -> None:
    """Print a document; outside of a terminal, only `wrapped` breaks its sentences into lines."""
    for number, part in enumerate(document.parts_on("console")):
        # A table without a title belongs to the part before it.
        if number and (part.title or not part.table):
            console.print()
        _print_part(console, part, wrapped=wrapped)


def _print_part(console: Console, part: DocumentPart, *, wrapped: bool) -> None:
    table = part.table
    if part.title:
        print_words(console, part.title if table else f"{part.title}:", wrapped=wrapped)
    if table and part.whole:
        _print_whole(console, table)
    elif table:
        console.print(rich_table(table, console.width))
    for text in [*part.paragraphs, *part.items]:
        print_words(console, " ".join(text.split()), wrapped=wrapped)


def _print_whole(console: Console, table: Table) -> None:
    for number, part in enumerate(narrow_parts(table, console.width)):
        if number:
            console.print()
        console.print(_whole(part, console.width))


def _whole(table: Table, width: int) -> RichTable:
    """The table with names and texts folded to `width`; a figure is never split."""
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    for index, (column, each) in enumerate(zip(table.titles, widths(table, width), strict=True)):
        figures = index and not table.prose and any(_is_figure(row[index]) for row in table.rows)
        justify = "right" if figures else "left"
        drawn.add_column(escape(column), justify=justify, width=each, overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(_markup, row))
    return drawn


def _is_figure(cell: str) -> bool:
    """A number, with its sign or mark; also the dash in place of one."""
    return cell.lstrip("±≈<>≥−+ ")[:1].isdigit() or cell == "–"


def rich_table(table: Table, width: int) -> RichTable:
    """The table without the columns that do not fit into `width`."""
    table = fitting(table, width)
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    for index, column in enumerate(table.columns):
        drawn.add_column(
            escape(column.title),
            justify="left" if index == 0 or table.prose or column.words else "right",
            # When no column can be dropped, shorten names; never split a number. Where prose can be
            # folded instead, names stay whole too.
            no_wrap=not column.folds and (index > 0 or any(one.folds for one in table.columns)),
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*map(_markup, row))
    return drawn


def _markup(cell: str) -> str:
    return f"[{cell.style}]{escape(cell)}[/]" if isinstance(cell, Toned) else escape(cell)


def fitting(table: Table, width: int) -> Table:
    """The columns that fit. A column is left out rather than having its figures wrapped. Pure."""
    columns, shown = table.columns, list(range(len(table.columns)))
    empty = [at for at in shown[:0:-1] if {row[at] for row in table.rows} <= {"–", ""}]
    spare = [at for at in shown if columns[at].spare and at not in empty]
    for dropped in [*empty, *sorted(spare, key=lambda at: columns[at].spare)]:
        if sum(_column_width(table, at) for at in shown) + _GAP * (len(shown) - 1) <= width:
            break
        shown.remove(dropped)
    return table.only(shown)


def _column_width(table: Table, index: int) -> int:
    longest = max(len(cells[index]) for cells in [table.titles, *table.rows])
    return min(longest, _LEAST_FOLDED) if table.columns[index].folds else longest


# Between two columns.
_GAP = 2
# The least width of a column that may be folded.
_LEAST_FOLDED = 20
# A longer cell is a text, which may be folded.
_LONGEST_FIGURE = 24
# A name, or a word of one, is not folded up to this length; never more than half of the width.
_SHORT_NAME = 40


def narrow_parts(table: Table, width: int) -> list[Table]:
    """The table, or parts that fit into `width`, each with the columns of names. Pure."""
    every = range(len(table.columns))
    needed = _needed(table, width)
    names = [at for at in every if at == 0 or table.columns[at].id == "name"]
    groups: list[list[int]] = [[]]
    for index in (at for at in every if at not in names):
        taken = sum(needed[at] + _GAP for at in [*names, *groups[-1], index]) - _GAP
        if groups[-1] and taken > width:
            groups.append([])
        groups[-1].append(index)
    return [table.only([*names, *group]) for group in groups]


def widths(table: Table, width: int) -> list[int]:
    """The width of each column: what it needs, and what is left for those that need least. Pure."""
    needed = _needed(table, width)
    whole = [max(map(len, cells)) for cells in _cells(table)]
    room = width - _GAP * (len(needed) - 1)

    def filled(most: int) -> list[int]:
        return [max(least, min(all_of, most)) for least, all_of in zip(needed, whole, strict=True)]

    return next((of for most in range(width, 0, -1) if sum(of := filled(most)) <= room), needed)


def _needed(table: Table, width: int) -> list[int]:
    """The least width of each column, in characters."""
    names, *others = _cells(table)
    whole, limit = max(map(len, names)), min(_SHORT_NAME, width // 2)
    name = whole if whole <= limit else max(_longest_word(each, limit) for each in names)
    if table.prose:
        return [name, *[max(_longest_word(each, limit) for each in cells) for cells in others]]
    return [name, *[max([_least(heading), *map(_figure, cells)]) for heading, *cells in others]]


def _cells(table: Table) -> list[list[str]]:
    """The cells of each column, its heading first."""
    return [list(cells) for cells in zip(table.titles, *table.rows, strict=True)]


def _figure(cell: str) -> int:
    return len(cell) if len(cell) <= _LONGEST_FIGURE else _least(cell)


def _least(text: str) -> int:
    return _longest_word(text, _LONGEST_FIGURE)


def _longest_word(text: str, limit: int) -> int:
    return min(limit, max(map(len, text.split()), default=0))
