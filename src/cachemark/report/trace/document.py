"""A document about a trace, before it is rendered: a title, facts, tables, plots."""

from __future__ import annotations

import msgspec

from cachemark.report.model import Section
from cachemark.report.plots.plot import Plot


class TracePart(msgspec.Struct, frozen=True, kw_only=True):
    """A table, and the plots that show the same for two widths of a page."""

    section: Section
    wide: list[Plot] = []
    narrow: list[Plot] = []
    # On a page only: a terminal has the most important tables.
    only_page: bool = False


class TraceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`eyebrow` says what kind of document it is, `source` are its figures, for a download."""

    eyebrow: str
    title: str
    facts: list[tuple[str, str]]
    warnings: list[str]
    parts: list[TracePart]
    source: msgspec.Struct
