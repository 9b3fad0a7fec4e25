"""The engine's answers in words: a fit, a snapshot, the servers that a trace needs."""

import msgspec

from cachemark.model.trace_words import ToldTrace
from cachemark.report.trace.document import TraceDocument, TracePart


def document(of: ToldTrace, source: msgspec.Struct | None = None) -> TraceDocument:
    """The document of it; `source` are its figures, for a download, if they are more than these."""
    return TraceDocument(
        eyebrow=of.about,
        title=of.title,
        facts=of.facts,
        warnings=of.warnings,
        parts=[TracePart(s.title, s.columns, s.rows, s.notes, prose=s.prose) for s in of.sections],
        source=source or of,
    )
