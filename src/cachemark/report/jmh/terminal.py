"""JMH's figures as terminal tables."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table as RichTable

from cachemark.report.console import text_console, text_of
from cachemark.report.jmh.model import JmhReport
from cachemark.report.jmh.tables import TEXT_COLUMNS, figures_table
from cachemark.report.terminal import print_section


def render(report: JmhReport, width: int | None) -> str:
    """The report as text of at most `width` columns."""
    console = text_console(width)
    console.print(escape(report.title), soft_wrap=True)
    console.print(_figures(report))
    if report.failures:
        console.print("\nNo figure:")
    for line in report.failures:
        console.print(line, markup=False, soft_wrap=True)
    console.print()
    for note in report.notes:
        console.print(escape(note), soft_wrap=True)
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
