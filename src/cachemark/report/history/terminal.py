"""A history as terminal tables."""

from __future__ import annotations

import io

from rich.markup import escape

from cachemark.report.console import plain_console
from cachemark.report.history.model import History
from cachemark.report.history.tables import notes, tables
from cachemark.report.terminal import rich_table

_WIDTH = 120
# What a narrow terminal does without, first to go first.
_DISPENSABLE = (
    "runtime", "cachemark", "made", "p99", "server", "host", "valid", "library", "played",
    "experiment",
)  # fmt: skip


def render(history: History, width: int | None) -> str:
    """The history as text of at most `width` columns."""
    file = io.StringIO()
    console = plain_console(file=file, width=width or _WIDTH, no_color=True)
    for title, table in tables(history):
        if title:
            console.print(escape(title))
        console.print(rich_table(table, console.width, _DISPENSABLE))
        console.print()
    for note in notes(history):
        console.print(escape(note))
    return file.getvalue()
