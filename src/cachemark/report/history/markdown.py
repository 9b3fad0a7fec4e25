"""A history as Markdown."""

from __future__ import annotations

from cachemark.report.history.model import History
from cachemark.report.history.tables import notes, tables
from cachemark.report.markdown import table_lines


def render(history: History, width: int | None) -> str:
    """The history as a Markdown document; `width` is not used."""
    del width
    lines = ["# History"]
    for title, table in tables(history):
        lines += ["", *([f"## {title}", ""] if title else []), *table_lines(table)]
    lines += ["", *[f"- {note}" for note in notes(history)]]
    return "\n".join(lines) + "\n"
