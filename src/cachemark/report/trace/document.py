"""A document about a trace: a title, facts, tables, plots; as one page, and for a terminal."""

from collections.abc import Callable, Sequence

import msgspec

from cachemark.model.foreign_text import clean_all
from cachemark.report.document import Document, DocumentPart
from cachemark.report.html import render_page
from cachemark.report.html.page import SectionPart, download, drawn, section_part
from cachemark.report.json_text import json_text
from cachemark.report.model import Section
from cachemark.report.plots.layout import NARROW, WIDE
from cachemark.report.plots.plot import Plot
from cachemark.report.tables import section_part as text_part
from cachemark.report.terminal import draw


def _no_plots(_: int) -> list[Plot]:
    return []


class TracePart(msgspec.Struct, frozen=True):
    """A table, the notes below it, and the plots that show the same for a width of a page.

    `only_page`: a terminal has the most important tables.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    plots: Callable[[int], list[Plot]] = _no_plots
    only_page: bool = False
    prose: bool = False

    @property
    def section(self) -> Section:
        """The table as a section of a report."""
        return Section(
            title=self.title,
            columns=self.columns,
            rows=self.rows,
            notes=self.notes,
            prose=self.prose,
        )


class TraceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`eyebrow` says what kind of document it is, `source` are its figures, for a download."""

    eyebrow: str
    title: str
    facts: list[tuple[str, str]]
    warnings: list[str]
    parts: list[TracePart]
    source: msgspec.Struct


def joined(first: TraceDocument, others: Sequence[TraceDocument]) -> TraceDocument:
    """One document: the first one, and the parts of others below it, with their warnings."""
    return msgspec.structs.replace(
        first,
        warnings=[*first.warnings, *(line for other in others for line in other.warnings)],
        parts=[*first.parts, *(part for other in others for part in other.parts)],
    )


def render_trace_page(document: TraceDocument) -> str:
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
    wide, narrow = (clean_all(part.plots(width)) for width in (WIDE, NARROW))
    return section_part(part.section, f"section-{number}", drawn(wide, narrow))


def render_trace_text(document: TraceDocument, width: int | None) -> str:
    """The document as text of at most `width` columns."""
    facts = " · ".join(f"{name}: {value}" for name, value in document.facts)
    parts = [
        DocumentPart(items=[document.title, facts]),
        *[text_part(part.section) for part in document.parts if not part.only_page],
        DocumentPart(items=document.warnings),
    ]
    return draw(Document(title=document.title, parts=parts), width)
