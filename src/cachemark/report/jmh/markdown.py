"""JMH's figures as Markdown."""

from __future__ import annotations

from cachemark.model.foreign_text import clean_all
from cachemark.report.jmh.model import JmhReport
from cachemark.report.jmh.tables import figures_table
from cachemark.report.markdown import one_line, table_lines
from cachemark.report.tables import section_table


def render(report: JmhReport, width: int | None) -> str:
    """The report as a Markdown document; `width` is not used."""
    del width
    report = clean_all(report, "markdown")
    lines = [f"# {one_line(report.title)}", "", *table_lines(figures_table(report))]
    lines += ["", *[f"- {note}" for note in report.notes]]
    for section in report.sections:
        lines += ["", f"## {section.title}", "", *table_lines(section_table(section))]
        lines += ["", *[f"- {note}" for note in section.notes]]
    for heading, items in (("No figure", report.failures), ("Environment", report.jvm)):
        if items:
            lines += ["", f"## {heading}", "", *[f"- {one_line(item)}" for item in items]]
    return "\n".join(lines) + "\n"
