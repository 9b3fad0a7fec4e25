"""A history as Markdown."""

from __future__ import annotations

from cachemark.model.foreign_text import clean_all
from cachemark.report.history.model import History
from cachemark.report.history.tables import notes, tables
from cachemark.report.markdown import one_line, table_lines


def render(history: History, width: int | None) -> str:
    """The history as a Markdown document; `width` is not used."""
    del width
    history = clean_all(history, "markdown")
    lines = ["# History"]
    for title, table in tables(history):
        lines += ["", *([f"## {one_line(title)}", ""] if title else []), *table_lines(table)]
    lines += ["", *[f"- {note}" for note in notes(history)]]
    return "\n".join(lines) + "\n"
