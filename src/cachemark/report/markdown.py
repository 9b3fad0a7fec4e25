"""The report as Markdown."""

from __future__ import annotations

from cachemark.model.foreign_text import clean_all
from cachemark.report.absences import absence_text
from cachemark.report.model import Report
from cachemark.report.tables import (
    Table,
    group_title,
    operation_table,
    ranking_table,
    section_table,
    self_comparison,
)


def render(report: Report, width: int | None) -> str:
    """The report as a Markdown document; `width` is not used."""
    del width
    report = clean_all(report, "markdown")
    experiment = report.header.experiment
    lines = [f"# {experiment.name}", "", f"**{one_line(report.header.title)}**", ""]
    lines += [f"- {one_line(answer)}" for answer in report.answers]
    for group in report.groups:
        lines += ["", f"## {one_line(group_title(group))}", "", *table_lines(ranking_table(group))]
        if group.itself:
            lines += ["", self_comparison(group)]
        of_kinds = operation_table(group)
        if of_kinds:
            lines += ["", *table_lines(of_kinds)]
    for section in report.sections:
        lines += ["", f"## {section.title}", ""]
        lines += table_lines(section_table(section))
        lines += ["", *[f"- {note}" for note in section.notes]]
    parts = (
        ("Not played", [absence_text(absence, code=True) for absence in report.absences]),
        ("Trials that do not count", report.rejected),
        ("Notes", report.warnings),
        ("Environment", report.environment),
    )
    for heading, items in parts:
        if items:
            lines += ["", f"## {heading}", "", *[f"- {one_line(item)}" for item in items]]
    if experiment.analysis:
        lines += ["", "## Analysis", "", experiment.analysis.strip()]
    return "\n".join(lines) + "\n"


def table_lines(table: Table) -> list[str]:
    head = "| " + " | ".join(table.titles) + " |"
    rule = (
        "|" + "|".join([":--", *[":--" if table.prose else "--:"] * (len(table.columns) - 1)]) + "|"
    )
    return [head, rule, *["| " + " | ".join(map(_cell, row)) + " |" for row in table.rows]]


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def one_line(text: str) -> str:
    """Text on one line: line ends in a worker's message would break a list or a table."""
    return " ".join(text.split())
