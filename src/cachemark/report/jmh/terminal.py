"""JMH's figures as terminal tables."""

from __future__ import annotations

from cachemark.report.console import print_words, text_console, text_of
from cachemark.report.jmh.model import JmhReport
from cachemark.report.jmh.tables import figures_table
from cachemark.report.terminal import print_section, rich_table


def render(report: JmhReport, width: int | None) -> str:
    """The report as text of at most `width` columns."""
    console = text_console(width)
    print_words(console, report.title, wrapped=True)
    console.print(rich_table(figures_table(report), console.width))
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
