"""A document about a trace as terminal tables."""

from __future__ import annotations

from cachemark.report.document import Document, DocumentPart
from cachemark.report.tables import section_part
from cachemark.report.terminal import draw
from cachemark.report.trace.document import TraceDocument


def render(document: TraceDocument, width: int | None) -> str:
    """The document as text of at most `width` columns."""
    facts = " · ".join(f"{name}: {value}" for name, value in document.facts)
    sections = [part.section for part in document.parts if not part.only_page]
    parts = [
        DocumentPart(items=[document.title, facts]),
        *map(section_part, sections),
        DocumentPart(items=document.warnings),
    ]
    return draw(Document(title=document.title, parts=parts), width)
