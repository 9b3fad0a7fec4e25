"""A comparison as Markdown, for example for a comment on a pull request."""

from __future__ import annotations

from cachemark.report.compare.tables import head, lists, shared, tables, tally
from cachemark.report.compare.value import Compared
from cachemark.report.markdown import draw, one_line


def render(compared: Compared, width: int | None) -> str:
    """The comparison as a Markdown document; `width` is not used."""
    del width
    first, *rest = head(compared)
    lines = [f"# {first}", "", *[f"{line}  " for line in [*rest, shared(compared)] if line]]
    lines += ["", f"**{tally(compared)}**"]
    for name, table in tables(compared):
        lines += ["", f"## {name}", "", *draw(table)]
    for heading, items in lists(compared):
        if items:
            lines += ["", f"## {heading}", "", *[f"- {one_line(item)}" for item in items]]
    return "\n".join(lines) + "\n"
