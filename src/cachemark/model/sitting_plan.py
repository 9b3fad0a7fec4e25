"""Groups cells that take turns into sets, and sets into sittings. Pure.

One Williams square balances one set: at most MAX_SET cells. A sitting holds whole sets of one
workload and load, with all of their processes alive at the same time.
"""

from collections.abc import Sequence

from cachemark.model.client_name import parse_client_name
from cachemark.model.outcome import Cell

# A square of more cells takes too long: an odd number of n cells needs 2n rows of n slices.
MAX_SET = 8
MAX_SITTING = 16
# Clients without a JIT compiler or an interpreter to start, by the beginnings of their names.
_STEADY = ("native", "c/", "rust/", "go/")
Sets = list[list[Cell]]


def sittings_of(grid: Sequence[Cell], reference: str) -> list[Sets]:
    """The sittings that play every cell of a grid once; the first sets hold the first cells.

    Cells of one workload and load are compared with each other. Up to MAX_SET of them are one set.
    Above that, a set has the clients of one server, or, with one or two clients, the servers of one
    client. Where even these are too many, the sets overlap: each begins with the same references,
    through which cells of different sets are compared (see `references_of`).
    """
    tables: dict[tuple[str, str], list[Cell]] = {}
    for cell in grid:
        tables.setdefault((cell.workload, cell.load), []).append(cell)
    return [sitting for table in tables.values() for sitting in _pack(_sets(table, reference))]


def _sets(table: list[Cell], reference: str) -> Sets:
    if len(table) <= MAX_SET:
        return [table]
    by_server: dict[str, list[Cell]] = {}
    by_client: dict[str, list[Cell]] = {}
    for cell in table:
        by_server.setdefault(cell.server, []).append(cell)
        by_client.setdefault(cell.client, []).append(cell)
    few_clients = max(map(len, by_server.values())) <= 2
    groups = by_client if few_clients else by_server
    return [part for group in groups.values() for part in _overlapping(group, reference)]


def _overlapping(group: list[Cell], reference: str) -> Sets:
    """Cut a group into sets of about equal size that share their first cells.

    Two settings or versions of one client stay together: users compare these first of all.
    """
    if len(group) <= MAX_SET:
        return [group]
    shared = references_of(group, reference)
    units: dict[tuple[str, str], list[Cell]] = {}
    for cell in group:
        if cell not in shared:
            units.setdefault((library_of(cell), cell.server), []).append(cell)
    room = MAX_SET - len(shared)
    parts = [unit[at : at + room] for unit in units.values() for at in range(0, len(unit), room)]
    size = -(-sum(map(len, parts)) // -(-sum(map(len, parts)) // room))
    sets: Sets = []
    for part in parts:
        if not sets or len(sets[-1]) - len(shared) + len(part) > size:
            sets.append([*shared])
        sets[-1] += part
    return sets


def references_of(group: Sequence[Cell], reference: str) -> list[Cell]:
    """The two cells that all sets of a group share; the first is `reference`, or else the first.

    With two, a disturbance of one counts half, and either can replace the other if it fails. The
    second is a client that starts quickly and is steady from its first slice: of a compiled
    language, if possible.
    """
    first = next((cell for cell in group if cell.client == reference), group[0])
    others = [
        cell
        for cell in group
        if library_of(cell) != library_of(first) or cell.server != first.server
    ]
    return [first, *sorted(others, key=_startup_rank)[:1]]


def _startup_rank(cell: Cell) -> int:
    ranks = (n for n, prefix in enumerate(_STEADY) if cell.client.startswith(prefix))
    return next(ranks, len(_STEADY))


def library_of(cell: Cell) -> str:
    """The client without its version, settings, options and the mark of a repetition."""
    return parse_client_name(cell.client).id


def _pack(sets: Sets) -> list[Sets]:
    """Join sets that follow each other, while they share no cell and a sitting has room."""
    sittings: list[Sets] = []
    for part in sets:
        held = [cell for other in sittings[-1] for cell in other] if sittings else []
        fits = held and len(held) + len(part) <= MAX_SITTING
        if fits and not any(cell in held for cell in part):
            sittings[-1].append(part)
        else:
            sittings.append([part])
    return sittings
