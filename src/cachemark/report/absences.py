"""Missing clients, servers and abilities: one line for each, however many cells need it."""

from collections.abc import Sequence

from cachemark.analysis.number_format import count_of
from cachemark.model.outcome import Cell
from cachemark.model.plan import Skipped, is_repeat
from cachemark.model.sitting_plan import library_of
from cachemark.report.model import Absence


def find_absences(skipped: Sequence[Skipped], cells: Sequence[Cell]) -> list[Absence]:
    """The missing things, each with its number of cells. `cells` are all cells of the run.

    A client that is played twice counts once.
    """
    alike: dict[tuple[str, str], list[Cell]] = {}
    for skip in skipped:
        if not is_repeat(skip.cell):
            reason = skip.reason.removeprefix(f"{library_of(skip.cell)}: ")
            alike.setdefault((reason, skip.remedy), []).append(skip.cell)
    reasons = {skip.cell: skip.reason for skip in skipped}
    return [
        Absence(what=what, reason=reason.removeprefix(f"{what} "), remedy=remedy, cells=count)
        for (reason, remedy), members in alike.items()
        for what, count in _named(members, reasons, cells)
    ]


def absence_text(absence: Absence, *, code: bool = False) -> str:
    """An absence on one line; with `code`, the remedy is marked as Markdown marks commands."""
    count = f" ({count_of(absence.cells, 'cell')})" if absence.cells > 1 else ""
    remedy = f"`{absence.remedy}`" if code else absence.remedy
    return f"{absence.what}: {absence.reason}{count}" + (f" → {remedy}" if absence.remedy else "")


def _named(
    members: list[Cell], reasons: dict[Cell, str], cells: Sequence[Cell]
) -> list[tuple[str, int]]:
    """Names missing for one reason: servers and clients, then names that other cells share."""
    whole: dict[str, int] = {}
    single: list[Cell] = []
    for cell in members:
        if what := _missing(cell, reasons, cells):
            whole[what] = whole.get(what, 0) + 1
        else:
            single.append(cell)
    return [*whole.items(), *([(_shared(single), len(single))] if single else [])]


def _missing(cell: Cell, reasons: dict[Cell, str], cells: Sequence[Cell]) -> str:
    """The server or client that is missing with a cell; empty if others of both were played."""
    reason = reasons[cell]
    on_server = [other for other in cells if other.server == cell.server]
    elsewhere = [other for other in cells if other.server != cell.server]
    # The server is missing if the reason names it, or if all of its clients have this reason, and
    # not everywhere.
    several = len({other.client for other in on_server}) > 1
    differs = any(reasons.get(other) != reason for other in elsewhere)
    named = reason.startswith(f"{cell.server} ")
    if all(reasons.get(other) == reason for other in on_server) and (several or differs or named):
        return cell.server
    of_client = [other for other in cells if other.client == cell.client]
    return cell.client if all(other in reasons for other in of_client) else ""


def _shared(cells: list[Cell]) -> str:
    if len(cells) == 1:
        return f"{cells[0].client} · {cells[0].workload} · {cells[0].load}"
    parts = {of: {getattr(cell, of) for cell in cells} for of in cells[0].__struct_fields__}
    shared = [values.pop() for values in parts.values() if len(values) == 1]
    clients = ", ".join(dict.fromkeys(cell.client for cell in cells))
    alone = clients.count(", ") + 1 == len(cells)
    return " · ".join([*shared, clients] if alone else shared)
