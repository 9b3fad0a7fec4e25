"""A comparison as Markdown, for example for a comment on a pull request."""

from __future__ import annotations

from cachemark.model.foreign_text import clean_all
from cachemark.report.compare.gate import gate_line
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.tables import common_fields, head, tables, tally, text_lists
from cachemark.report.markdown import one_line, table_lines


def render(compared: ComparisonReport, width: int | None) -> str:
    """The comparison as a Markdown document; `width` is not used."""
    del width
    compared = clean_all(compared, "markdown")
    first, *rest = map(one_line, head(compared))
    lines = [f"# {first}", "", *[f"{line}  " for line in [*rest, common_fields(compared)] if line]]
    for answer in (tally(compared), gate_line(compared)):
        lines += ["", f"**{answer}**"] if answer else []
    for name, table in tables(compared):
        lines += ["", f"## {name}", "", *table_lines(table)]
    for heading, items in text_lists(compared):
        if items:
            lines += ["", f"## {heading}", "", *[f"- {one_line(item)}" for item in items]]
    return "\n".join(lines) + "\n"
