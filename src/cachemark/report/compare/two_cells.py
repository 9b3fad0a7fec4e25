"""Comparison of two cells with different names: one of each run, or both of one run.

A text such as `go/gomemcache` or `go/gomemcache · embedded` names cells. What it leaves open has to
be the same on both sides, so two texts can name several pairs.
"""

from collections.abc import Collection, Sequence
from itertools import permutations, product

import msgspec

from cachemark.model.errors import UsageError, similar_name
from cachemark.model.outcome import Cell
from cachemark.report.cells import CELL_FIELDS, SEPARATOR, cell_title
from cachemark.report.compare.model import ComparisonReport
from cachemark.report.compare.selection import CellFilter, counterparts, trials_by_cell
from cachemark.report.compare.two_runs import Side, compare_sides
from cachemark.report.compare.within_run import FACTORS, compare_within_run

_LISTED = 3


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of two texts: the cells of each side, and the pairs among them."""

    first: CellFilter
    second: CellFilter
    pairs: list[tuple[Cell, Cell]]


def compare_cells(
    baseline: Side,
    other: Side | None,
    texts: tuple[str, str],
    figures: Sequence[str],
    margin_percent: float,
) -> ComparisonReport:
    """Compare a cell of the baseline with one of the other side; without it, of the same run.

    Raises UsageError if a text names no cell, or if nothing can be paired.
    """
    sides = baseline, other or baseline
    cells = [
        list(dict.fromkeys(cell for run in side.outcomes for cell in trials_by_cell(run)))
        for side in sides
    ]
    found = name_pairs(texts, (cells[0], cells[1]), (sides[0].name, sides[1].name))
    if other is None:
        header, outcomes = baseline.headers[0], baseline.outcomes[0]
        within = one_filter(found)
        return compare_within_run(header, outcomes, within, figures, margin_percent)
    compared = compare_sides(baseline, other, found.pairs, figures, margin_percent)
    names = [f"{text} of {side.name}" for text, side in zip(texts, sides, strict=True)]
    return msgspec.structs.replace(compared, baseline=names[0], other=names[1])


def name_pairs(
    texts: tuple[str, str], cells: tuple[Collection[Cell], Collection[Cell]], where: tuple[str, str]
) -> Naming:
    """The cells that two texts name, in pairs. Raises UsageError. Pure.

    A name of both a client and a server is read as the kind of the other text.
    """
    firsts, seconds = (readings(*one) for one in zip(texts, cells, where, strict=True))
    likely = sorted(product(firsts, seconds), key=lambda both: both[0].fields != both[1].fields)
    for first, second in likely:
        pairs = counterparts(first, second, *cells)
        if any(other in cells[1] for _, other in pairs):
            return Naming(first=first, second=second, pairs=pairs)
    raise UsageError(
        f"{texts[0]} of {where[0]} and {texts[1]} of {where[1]} have no other names in common",
        "name both by their titles: " + "; or ".join(
            f"{run}: {_titles(list(filter(found[0].has, of)))}"
            for found, of, run in zip((firsts, seconds), cells, where, strict=True)
        ),
    )  # fmt: skip


def readings(text: str, cells: Collection[Cell], where: str) -> list[CellFilter]:
    """The filters that a text can mean among these cells, at least one. Raises UsageError. Pure."""
    names = [name.strip() for name in text.strip().split(SEPARATOR)]
    if not all(names):
        raise UsageError(f"{text!r}: not the name of a cell", f"{where} has {_titles(cells)}")
    known = {field: {getattr(cell, field) for cell in cells} for field in CELL_FIELDS}
    for name in names:
        if not any(name in of for of in known.values()):
            near = similar_name(name, sorted(set[str]().union(*known.values())))
            raise UsageError(f"{name}: not in {where}", f"{near}it has {_titles(cells)}")
    filters = (
        CellFilter(**{field: (name,) for field, name in zip(fields, names, strict=True)})
        for fields in permutations(CELL_FIELDS, min(len(names), len(CELL_FIELDS)))
        if len(names) <= len(CELL_FIELDS)
    )
    found = [one for one in filters if any(map(one.has, cells))]
    if not found:
        raise UsageError(f"{text}: {where} has no such cell", f"it has {_titles(cells)}")
    return found


def one_filter(found: Naming) -> CellFilter:
    """Both sides as one filter, for a comparison within a run. Raises UsageError. Pure."""
    both = {
        field: tuple(dict.fromkeys((*getattr(found.first, field), *getattr(found.second, field))))
        for field in CELL_FIELDS
    }
    differing = [field for field, names in both.items() if len(names) > 1]
    if not differing:
        name = cell_title(found.pairs[0][0])
        raise UsageError(f"{name}: cannot be compared with itself", "name two different ones")
    if len(differing) > 1 or differing[0] not in FACTORS:
        raise UsageError(
            f"the cells differ in their {' and '.join(differing)}: within one run, two clients, "
            "two servers or two loads are compared",
            "name cells that differ in one of them only",
        )
    return CellFilter(**both)


def _titles(cells: Collection[Cell]) -> str:
    shown = [cell_title(cell) for cell in list(cells)[:_LISTED]]
    more = f" and {len(cells) - len(shown)} more" if len(cells) > len(shown) else ""
    return ", ".join(shown) + more
