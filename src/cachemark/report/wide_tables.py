"""Tables of figures for a terminal that may be narrow: no figure is cut, and no word of a heading.

What does not fit side by side becomes several tables below each other, each with the first column.
"""

from cachemark.report.document import Table

# Between two columns.
_GAP = 2
# A longer cell is a text, which may be folded.
_LONGEST_FIGURE = 24
# A name, or a word of one, is not folded up to this length; never more than half of the width.
_SHORT_NAME = 40


def parts(table: Table, width: int) -> list[Table]:
    """The table, or tables with fewer columns each that fit into `width`. Pure."""
    needed = _needed(table, width)
    groups: list[list[int]] = [[]]
    for index in range(1, len(table.columns)):
        taken = sum(needed[at] + _GAP for at in [0, *groups[-1], index]) - _GAP
        if groups[-1] and taken > width:
            groups.append([])
        groups[-1].append(index)
    return [table.only([0, *group]) for group in groups]


def widths(table: Table, width: int) -> list[int]:
    """The width of each column: what it needs; what is left goes to the first columns. Pure."""
    needed = _needed(table, width)
    whole = [max(map(len, cells)) for cells in _cells(table)]
    left = width - sum(needed) - _GAP * (len(needed) - 1)
    found: list[int] = []
    for least, most in zip(needed, whole, strict=True):
        more = max(0, min(most - least, left))
        left -= more
        found.append(least + more)
    return found


def _needed(table: Table, width: int) -> list[int]:
    """The least width of each column, in characters."""
    names, *figures = _cells(table)
    whole, limit = max(map(len, names)), min(_SHORT_NAME, width // 2)
    name = whole if whole <= limit else max(_longest_word(each, limit) for each in names)
    return [name, *[max([_least(heading), *map(_figure, cells)]) for heading, *cells in figures]]


def _cells(table: Table) -> list[list[str]]:
    """The cells of each column, its heading first."""
    return [list(cells) for cells in zip(table.titles, *table.rows, strict=True)]


def _figure(cell: str) -> int:
    return len(cell) if len(cell) <= _LONGEST_FIGURE else _least(cell)


def _least(text: str) -> int:
    return _longest_word(text, _LONGEST_FIGURE)


def _longest_word(text: str, limit: int) -> int:
    return min(limit, max(map(len, text.split()), default=0))
