"""A document about a trace as terminal tables."""

from __future__ import annotations

from cachemark.report.console import print_words, text_console, text_of
from cachemark.report.terminal import print_section
from cachemark.report.trace.document import TraceDocument


def render(document: TraceDocument, width: int | None) -> str:
    """The document as text of at most `width` columns."""
    console = text_console(width)
    print_words(console, document.title, wrapped=True)
    facts = " · ".join(f"{name}: {value}" for name, value in document.facts)
    print_words(console, facts, wrapped=True)
    for part in document.parts:
        if not part.only_page:
            print_section(console, part.section)
    if document.warnings:
        console.print()
    for warning in document.warnings:
        print_words(console, warning, wrapped=True)
    return text_of(console)
