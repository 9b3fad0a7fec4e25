"""A workload that was fitted to a trace, as the engine's `trace fit` describes it."""

from __future__ import annotations

import msgspec

from cachemark.report.model import Section
from cachemark.report.trace.document import TraceDocument, TracePart


class FittedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The lines and tables of a terminal, and the figures for those who asked for JSON."""

    title: str
    facts: list[tuple[str, str]]
    missing: list[str]
    sections: list[Section]
    figures: msgspec.Raw


def fitted(printed: str) -> FittedTrace:
    """What the engine printed."""
    return msgspec.json.decode(printed, type=FittedTrace)


def document(of: FittedTrace) -> TraceDocument:
    """The document of a fit."""
    return TraceDocument(
        eyebrow="A workload like the trace",
        title=of.title,
        facts=of.facts,
        warnings=[f"Not in the workload: {each}." for each in of.missing],
        parts=[TracePart(s.title, s.columns, s.rows, s.notes) for s in of.sections],
        source=of,
    )
