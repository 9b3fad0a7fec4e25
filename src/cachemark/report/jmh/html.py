"""JMH's figures as one HTML file, with the style and the script of the report's page."""

from cachemark.model.foreign_text import clean_all
from cachemark.report.html import render_page
from cachemark.report.html.descriptions import code_parts
from cachemark.report.html.page import Download, SectionPart, download, drawn, section_part
from cachemark.report.jmh import csv_file
from cachemark.report.jmh.model import SCHEMA, JmhReport
from cachemark.report.jmh.tables import figures_table
from cachemark.report.json_text import versioned
from cachemark.report.model import Section
from cachemark.report.plots.layout import NARROW, WIDE
from cachemark.report.plots.published import published


def render(report: JmhReport, width: int | None) -> str:
    """The report as one HTML file; `width` is not used, since the page fits any width."""
    del width
    report = clean_all(report)
    return render_page(
        "jmh.html.jinja",
        _downloads(report),
        "cachemark.report.jmh",
        report=report,
        figures=figures_table(report),
        notes=[code_parts(note) for note in report.notes],
        sections=[_part(section, n) for n, section in enumerate(report.sections, 1)],
    )


def _part(section: Section, number: int) -> SectionPart:
    figures = drawn(published(section, WIDE), published(section, NARROW))
    return section_part(section, f"section-{number}", figures)


def _downloads(report: JmhReport) -> list[Download]:
    plain = versioned(SCHEMA)(report, None).encode("utf-8")
    table = csv_file.render(report, None).encode("utf-8")
    return [
        download("The whole report", "jmh-report.json", "application/json", plain),
        download("The figures", "jmh-report.csv", "text/csv", table),
    ]
