"""A document about a trace as one HTML file, with the style and the script of the report's page."""

from __future__ import annotations

from cachemark.model.foreign_text import clean_all
from cachemark.report.html import render_page
from cachemark.report.html.page import download, drawn, section_part
from cachemark.report.html.page_values import SectionPart
from cachemark.report.json_text import json_text
from cachemark.report.trace.document import TraceDocument, TracePart


def render(document: TraceDocument) -> str:
    """The document as one HTML file. Raises UsageError if the plots cannot be drawn."""
    document = clean_all(document)
    figures = json_text(document.source).encode("utf-8")
    return render_page(
        "trace.html.jinja",
        [download("The figures", "trace.json", "application/json", figures)],
        "cachemark.report.trace",
        document=document,
        parts=[_part(part, number) for number, part in enumerate(document.parts, 1)],
    )


def _part(part: TracePart, number: int) -> SectionPart:
    return section_part(part.section, f"section-{number}", drawn(part.wide, part.narrow))
