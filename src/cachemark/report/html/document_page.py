"""A document as one HTML file, with the figures inside it as files."""

from collections.abc import Mapping

from cachemark.model.foreign_text import clean_all
from cachemark.report.document import Document, DocumentPart
from cachemark.report.html.descriptions import code_parts
from cachemark.report.html.page import PageFigure, download, drawn
from cachemark.report.html.render import render_page
from cachemark.report.plots.layout import NARROW, WIDE

_KINDS = {"csv": ("The figures", "text/csv"), "json": ("All data", "application/json")}


def document_page(document: Document, files: Mapping[str, str]) -> str:
    """The page of a document. `files`: the text of each file, whose name ends in .csv or .json.

    Raises UsageError if the plots cannot be drawn.
    """
    document = clean_all(document)
    parts = document.parts_on("page")
    return render_page(
        "document.html.jinja",
        [download(*_KINDS[name.rpartition(".")[2]], name, text) for name, text in files.items()],
        document=document,
        parts=[(f"part-{n}", part, _figures(part)) for n, part in enumerate(parts, 1)],
        code_parts=code_parts,
    )


def _figures(part: DocumentPart) -> list[PageFigure]:
    if part.plots is None:
        return []
    wide, narrow = (clean_all(list(part.plots(width))) for width in (WIDE, NARROW))
    return drawn(wide, narrow)
