"""A document as Markdown."""

from cachemark.model.foreign_text import clean_all
from cachemark.report.document import Document, DocumentPart, Table


def draw(document: Document) -> str:
    """The document as Markdown text, with one line end at its end."""
    document = clean_all(document, "markdown")
    blocks = [f"# {one_line(document.title)}"]
    if document.lines:
        blocks.append("\n".join(f"{one_line(line)}  " for line in document.lines))
    if document.facts:
        blocks.append("\n".join(f"- {one_line(f'{name}: {of}')}" for name, of in document.facts))
    if document.warnings:
        blocks += ["## Know this first", "\n".join(f"- {one_line(of)}" for of in document.warnings)]
    blocks += [block for part in document.parts_on("page") for block in _blocks(part)]
    return "\n\n".join(blocks) + "\n"


def _blocks(part: DocumentPart) -> list[str]:
    blocks = [f"## {one_line(part.title)}"] if part.title else []
    if part.table:
        blocks.append("\n".join(table_lines(part.table)))
    blocks += [f"**{one_line(text)}**" if part.strong else text for text in part.paragraphs]
    if part.items:
        blocks.append("\n".join(f"- {one_line(item)}" for item in part.items))
    return blocks


def table_lines(table: Table) -> list[str]:
    head = "| " + " | ".join(table.titles) + " |"
    rule = (
        "|" + "|".join([":--", *[":--" if table.prose else "--:"] * (len(table.columns) - 1)]) + "|"
    )
    return [
        head,
        rule,
        *[
            "| " + " | ".join(one_line(cell).replace("|", r"\|") for cell in row) + " |"
            for row in table.rows
        ],
    ]


def one_line(text: str) -> str:
    """Text on one line: line ends in a worker's message would break a list or a table."""
    return " ".join(text.split())
