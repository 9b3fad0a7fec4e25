"""The report as terminal tables."""

from __future__ import annotations

import io

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from cachemark.report.tables import Table, kinds, ranking, title
from cachemark.report.value import Report

_WIDTH = 120


def render(report: Report, width: int | None) -> str:
    """The report as text of at most `width` columns."""
    console = Console(file=io.StringIO(), width=width or _WIDTH, highlight=False, no_color=True)
    say = console.print
    say(escape(report.header.experiment.question))
    for group in report.groups:
        say()
        say(escape(title(group)))
        say(_draw(ranking(group)))
        of_kinds = kinds(group)
        if of_kinds:
            say(_draw(of_kinds))
    for section in report.sections:
        say()
        say(escape(section.title))
        say(_draw(Table(columns=section.columns, rows=section.rows)))
        for note in section.notes:
            say(escape(note), style="dim")
    _lists(console, report)
    file = console.file
    return file.getvalue().rstrip() + "\n" if isinstance(file, io.StringIO) else ""


def _lists(console: Console, report: Report) -> None:
    absent = [
        f"{a.what}: {a.reason}" + (f" → {a.remedy}" if a.remedy else "") for a in report.absences
    ]
    parts = (
        ("", report.answers),
        ("Could not run:", absent),
        ("Trials that do not count:", report.rejected),
        ("", report.notes),
    )
    for heading, lines in parts:
        if lines:
            console.print()
        if lines and heading:
            console.print(heading)
        for line in lines:
            console.print(escape(line))


def _draw(table: Table) -> RichTable:
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    for index, column in enumerate(table.columns):
        justify = "left" if index == 0 or column in ("operation", "version") else "right"
        drawn.add_column(column, justify=justify, overflow="fold")
    for row in table.rows:
        drawn.add_row(*[escape(cell) for cell in row])
    return drawn
