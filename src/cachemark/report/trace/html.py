"""A document about a trace as one HTML file, with the style and the script of the report's page."""

from __future__ import annotations

from markupsafe import Markup

from cachemark.model.foreign_text import clean_all
from cachemark.report.html import column_classes, content_policy, script_text, style_sheet
from cachemark.report.html.environment import environment
from cachemark.report.html.page import download, drawn, section_part
from cachemark.report.html.page_values import SectionPart
from cachemark.report.html.theme import plot_colour_rules
from cachemark.report.json_text import json_text
from cachemark.report.trace.document import TraceDocument, TracePart


def render(document: TraceDocument) -> str:
    """The document as one HTML file. Raises UsageError if the plots cannot be drawn."""
    document = clean_all(document)
    figures = json_text(document.source).encode("utf-8")
    return (
        environment("cachemark.report.trace")
        .get_template("trace.html.jinja")
        .render(
            document=document,
            parts=[_part(part, number) for number, part in enumerate(document.parts, 1)],
            downloads=[download("The figures", "trace.json", "application/json", figures)],
            sides_of=column_classes,
            style=Markup(f"{style_sheet()}\n{plot_colour_rules()}"),
            script=Markup(script_text()),
            policy=content_policy(),
        )
    )


def _part(part: TracePart, number: int) -> SectionPart:
    return section_part(part.section, f"section-{number}", drawn(part.wide, part.narrow))
