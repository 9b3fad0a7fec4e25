"""A document about a trace: a title, facts, tables, plots; as one page, and for a terminal."""

from collections.abc import Sequence

import msgspec

from cachemark.report.document import Document, DocumentPart, Plots, plain_table


def trace_part(
    title: str,
    columns: list[str],
    rows: list[list[str]],
    notes: list[str],
    plots: Plots | None = None,
    *,
    only_page: bool = False,
    prose: bool = False,
) -> DocumentPart:
    """A table, the notes below it, and the plots that show the same for a width of a page.

    `only_page`: a terminal has the most important tables.
    """
    return DocumentPart(
        title=title,
        table=plain_table(columns, rows, prose=prose),
        whole=True,
        items=notes,
        on="page" if only_page else "both",
        plots=plots,
    )


def joined(first: Document, others: Sequence[Document]) -> Document:
    """One document: the first one, and the parts of others below it, with their warnings."""
    return msgspec.structs.replace(
        first,
        warnings=[*first.warnings, *(line for other in others for line in other.warnings)],
        parts=[*first.parts, *(part for other in others for part in other.parts)],
    )
