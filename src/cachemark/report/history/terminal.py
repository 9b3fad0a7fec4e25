"""A history as terminal tables."""

from __future__ import annotations

from rich.markup import escape

from cachemark.report.console import text_console, text_of
from cachemark.report.history.model import History
from cachemark.report.history.tables import notes, tables
from cachemark.report.terminal import rich_table


def render(history: History, width: int | None) -> str:
    """The history as text of at most `width` columns."""
    console = text_console(width)
    for title, table in tables(history):
        if title:
            console.print(escape(title))
        console.print(rich_table(table, console.width))
        console.print()
    for note in notes(history):
        console.print(escape(note))
    return text_of(console)
