"""The report as terminal tables."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from cachemark.report.absences import absence_text
from cachemark.report.console import print_words, text_console, text_of
from cachemark.report.model import Report, Section
from cachemark.report.tables import (
    Table,
    group_title,
    operation_table,
    ranking_table,
    section_table,
    self_comparison,
)
from cachemark.report.wide_tables import parts, widths

# Columns of a name that is never folded.
_SHORT = 32


def render(report: Report, width: int | None) -> str:
    """The report as text of at most `width` columns."""
    console = text_console(width)
    print_line = console.print
    print_words(console, report.header.title, wrapped=True)
    for group in report.groups:
        print_line()
        print_line(escape(group_title(group)))
        print_line(rich_table(ranking_table(group), console.width))
        if group.itself:
            print_words(console, self_comparison(group), wrapped=True, style="dim")
        of_kinds = operation_table(group)
        if of_kinds:
            print_line(rich_table(of_kinds, console.width))
    for section in report.sections:
        print_section(console, section)
    _lists(console, report)
    return text_of(console)


def print_section(console: Console, section: Section) -> None:
    """Print a section: its title, its table and its notes."""
    table = section_table(section)
    console.print()
    console.print(escape(section.title))
    for number, part in enumerate([table] if table.prose else parts(table, console.width)):
        if number:
            console.print()
        console.print(rich_table(part, None) if part.prose else _figures(part, console.width))
    for note in section.notes:
        print_words(console, note, wrapped=True, style="dim")


def _lists(console: Console, report: Report) -> None:
    parts = (
        ("", report.answers),
        ("Not played:", [absence_text(absence) for absence in report.absences]),
        ("Trials that do not count:", report.rejected),
        ("", report.warnings),
    )
    for heading, lines in parts:
        if lines:
            console.print()
        if lines and heading:
            console.print(heading)
        for line in lines:
            print_words(console, " ".join(line.split()), wrapped=True)


def _figures(table: Table, width: int) -> RichTable:
    """A table whose figures are whole."""
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    for index, (column, each) in enumerate(zip(table.titles, widths(table, width), strict=True)):
        figures = index and any(_is_figure(row[index]) for row in table.rows)
        justify = "right" if figures else "left"
        drawn.add_column(escape(column), justify=justify, width=each, overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn


def _is_figure(cell: str) -> bool:
    """A number, with its sign or mark; also the dash in place of one."""
    return cell.lstrip("±≈<>≥−+ ")[:1].isdigit() or cell == "–"


def rich_table(table: Table, width: int | None) -> RichTable:
    """The table without the columns that do not fit into `width`; wrapped if there is no width."""
    if width is not None:
        table = _fitting(table, width)
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    for index, column in enumerate(table.columns):
        drawn.add_column(
            escape(column.title),
            justify="left" if index == 0 or table.prose or column.words else "right",
            # Names give way where nothing is left to do without: a figure cut in two is another.
            # A name cut in two is no name either, where prose can give way.
            no_wrap=index > 0 if width is not None else index == 0 and _is_short(table, index),
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn


def _fitting(table: Table, width: int) -> Table:
    """The columns that fit. A column is left out rather than having its figures wrapped."""
    shown = list(range(len(table.columns)))
    for spare in sorted({column.spare for column in table.columns} - {0}):
        needed = sum(_column_width(table, index) + 2 for index in shown)
        if needed <= width:
            break
        shown = [index for index in shown if table.columns[index].spare != spare]
    return table.only(shown)


def _is_short(table: Table, index: int) -> bool:
    return _column_width(table, index) <= _SHORT


def _column_width(table: Table, index: int) -> int:
    return max(len(cells[index]) for cells in [table.titles, *table.rows])
