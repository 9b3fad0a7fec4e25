"""Selection of the cells and figures to compare."""

from collections.abc import Iterable, Sequence

import msgspec

from cachemark.analysis.statistics import FIGURES, Figure
from cachemark.model.errors import UsageError, similar_name
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER, is_repeat
from cachemark.report.cells import CELL_FIELDS

# The schedule of an open loop gives all clients the same rate: times distinguish them.
_CLOSED, _OPEN = ("rate", "p99"), ("p50", "p99")


class CellFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The requested names; no names of a kind means all of this kind."""

    client: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    load: tuple[str, ...] = ()

    def has(self, cell: Cell) -> bool:
        """Whether a cell is selected."""
        return all(
            not getattr(self, field) or getattr(cell, field) in getattr(self, field)
            for field in CELL_FIELDS
        )

    @property
    def fields(self) -> set[str]:
        """The kinds of which it has names."""
        return {field for field in CELL_FIELDS if getattr(self, field)}

    def check(self, cells: Iterable[Cell], where: str) -> None:
        """Check that each name occurs in some cell. Raises UsageError."""
        present = list(cells)
        for field in CELL_FIELDS:
            known = sorted({getattr(cell, field) for cell in present})
            for name in getattr(self, field):
                if name not in known:
                    remedy = f"{similar_name(name, known)}it has {', '.join(known)}"
                    raise UsageError(f"--{field} {name}: not in {where}", remedy)


def trials_by_cell(outcomes: Sequence[Outcome]) -> dict[Cell, list[Outcome]]:
    """All trials of each cell; cells are sorted by name, since a run's own order is random.

    The second arm of an A/A test is left out; the run's own report compares it with the first.
    """
    cells: dict[Cell, list[Outcome]] = {}
    played = [outcome for outcome in outcomes if not is_repeat(outcome.trial.cell)]
    for outcome in sorted(played, key=lambda outcome: outcome.trial.index):
        cells.setdefault(outcome.trial.cell, []).append(outcome)
    return {cell: cells[cell] for cell in sorted(cells, key=sort_key)}


def sort_key(cell: Cell) -> tuple[str, str, str, str]:
    """The sort key of cells, which keeps the same work together."""
    return cell.workload, cell.load, cell.server, cell.client


def valid_trials(trials: Sequence[Outcome]) -> list[Outcome]:
    """The valid trials."""
    return [trial for trial in trials if trial.verdict == "VALID" and trial.measure]


def rejection_reason(trials: Sequence[Outcome]) -> str:
    """Why a cell has no valid trial."""
    if not trials:
        return "not played"
    reasons = [
        trial.reason or "; ".join(trial.reasons) or (trial.verdict or trial.state)
        for trial in trials
    ]
    return " ".join(reasons[0].split())


def figures_for(names: Sequence[str], trials: Sequence[Outcome]) -> list[Figure]:
    """The requested figures; by default, those that suit the loads."""
    if names:
        return [FIGURES[name] for name in names]
    closed = all(trial.load.schedule == "closed" for trial in trials)
    return [FIGURES[name] for name in (_CLOSED if closed else _OPEN)]


def counterparts(
    first: CellFilter, second: CellFilter, before: Iterable[Cell], after: Iterable[Cell]
) -> list[tuple[Cell, Cell]]:
    """Each cell of the first side with its counterparts; with the expected cell if it has none."""
    known = list(after)
    free = first.fields & second.fields
    changed = {field: getattr(second, field)[0] for field in free}
    pairs: list[tuple[Cell, Cell]] = []
    for cell in filter(first.has, before):
        expected = msgspec.structs.replace(cell, **changed)
        counterparts = [one for one in known if second.has(one) and _is(one, expected, free)]
        if not counterparts and second.has(expected):
            counterparts = [expected]
        pairs += [(cell, one) for one in counterparts]
    return pairs


def _is(cell: Cell, expected: Cell, free: set[str]) -> bool:
    """Whether a cell is the expected one. An in-process cache is compared with any server's."""
    if "client" in free and "server" not in free and NO_SERVER in (cell.server, expected.server):
        return msgspec.structs.replace(cell, server=expected.server) == expected
    return cell == expected
