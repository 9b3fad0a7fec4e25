"""A comparison as terminal tables."""

from __future__ import annotations

from rich.markup import escape

from cachemark.report.compare.gate import gate_line
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.tables import common_fields, head, tables, tally, text_lists
from cachemark.report.console import text_console, text_of
from cachemark.report.terminal import rich_table


def render(compared: ComparisonReport, width: int | None) -> str:
    """The comparison as text of at most `width` columns."""
    console = text_console(width)
    for line in [*head(compared), common_fields(compared)]:
        if line:
            console.print(escape(line))
    for name, table in tables(compared):
        console.print()
        console.print(escape(name))
        console.print(rich_table(table, console.width))
    for heading, lines in text_lists(compared):
        if lines:
            console.print()
            console.print(f"{heading}:")
        for line in lines:
            console.print(escape(line))
    console.print()
    console.print(tally(compared))
    if compared.gate:
        console.print(escape(gate_line(compared)))
    return text_of(console)
