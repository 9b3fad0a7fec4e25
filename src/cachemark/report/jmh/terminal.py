"""JMH's figures as terminal tables."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table as RichTable

from cachemark.report.console import print_words, text_console, text_of
from cachemark.report.jmh.model import JmhReport
from cachemark.report.jmh.tables import TEXT_COLUMNS, figures_table
from cachemark.report.terminal import print_section


def render(report: JmhReport, width: int | None) -> str:
    """The report as text of at most `width` columns."""
    console = text_console(width)
    print_words(console, report.title, wrapped=True)
    console.print(_figures(report))
    if report.failures:
        console.print("\nNo figure:")
    for line in report.failures:
        print_words(console, line, wrapped=True)
    console.print()
    for note in report.notes:
        print_words(console, note, wrapped=True)
    for section in report.sections:
        print_section(console, section)
    return text_of(console)


def _figures(report: JmhReport) -> RichTable:
    table = figures_table(report)
    drawn = RichTable(box=None, pad_edge=False)
    for column in table.columns:
        left = column in TEXT_COLUMNS
        drawn.add_column(column, justify="left" if left else "right", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn
