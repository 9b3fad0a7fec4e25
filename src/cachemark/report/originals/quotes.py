"""The published lines of the original of a suite: the end of the forms that it used."""

from cachemark.model.published import PublishedFile, PublishedTable, Row, published_files


def quoted_lines(suite: str, *, heading: str = "{}") -> list[str]:
    """The published lines, one part for each section of a page; empty if there are none."""
    lines: list[str] = []
    for file in published_files(suite):
        for section, quoted in _sections(file).items():
            title = f"Published: {file.page.title}, {file.page.version}, {section}"
            lines += ["", heading.format(title), "", *quoted]
    return lines


def _sections(file: PublishedFile) -> dict[str, list[str]]:
    """The quoted lines of each section, each quote of a table once."""
    by_section: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for table in file.table:
        # Lines set off from the ones above: Markdown would take an average for a row.
        apart = {table.heading, *[average.quote for average in table.average]}
        for row in _as_on_the_page(table):
            section = row.section or table.section
            lines = by_section.setdefault(section, [])
            heading = "" if row in table.average else table.heading
            for quote in (heading, row.quote or table.quote):
                if quote and (section, quote) not in seen:
                    seen.add((section, quote))
                    lines += [""] if lines and quote in apart else []
                    lines += [line.expandtabs(8).rstrip() for line in quote.split("\n")]
            if row in table.average:
                seen.discard((section, table.heading))
    return by_section


def _as_on_the_page(table: PublishedTable) -> list[Row]:
    """Rows and averages: an average stands below the rows of its client."""
    if not table.average:
        return table.row
    clients = [average.label for average in table.average]
    return sorted(
        [*table.row, *table.average], key=lambda row: clients.index(row.label.partition(",")[0])
    )
