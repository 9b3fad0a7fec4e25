"""Which cells of a run are meant, and by which figures they are compared."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import msgspec

from cachemark.analysis.statistics import FIGURES, Figure
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import is_again

# In an open loop all are given the same rate: what tells them apart is time.
_CLOSED, _OPEN = ("rate", "p99"), ("p50", "p99")
FIELDS = ("client", "server", "workload", "load")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Names that were asked for; none of a kind: all of that kind."""

    client: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    load: tuple[str, ...] = ()

    def has(self, cell: Cell) -> bool:
        """Whether a cell is one of those."""
        return all(
            not getattr(self, field) or getattr(cell, field) in getattr(self, field)
            for field in FIELDS
        )

    def check(self, cells: Iterable[Cell], where: str) -> None:
        """Refuse a name that none of the cells has. Raises UsageError."""
        present = list(cells)
        for field in FIELDS:
            known = sorted({getattr(cell, field) for cell in present})
            for name in getattr(self, field):
                if name not in known:
                    near = difflib.get_close_matches(name, known, 1)
                    remedy = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
                    raise UsageError(f"--{field} {name}: not in {where}", remedy)


def by_cell(outcomes: Sequence[Outcome]) -> dict[Cell, list[Outcome]]:
    """All trials of each cell; the cells by name, as a run's own order is random.

    Without a client's second name: it is compared with the first in the run's own report.
    """
    cells: dict[Cell, list[Outcome]] = {}
    played = [outcome for outcome in outcomes if not is_again(outcome.trial.cell)]
    for outcome in sorted(played, key=lambda outcome: outcome.trial.index):
        cells.setdefault(outcome.trial.cell, []).append(outcome)
    return {cell: cells[cell] for cell in sorted(cells, key=by_name)}


def by_name(cell: Cell) -> tuple[str, str, str, str]:
    """What cells are sorted by: alike work stands together."""
    return cell.workload, cell.load, cell.server, cell.client


def valid(trials: Sequence[Outcome]) -> list[Outcome]:
    """Those that count."""
    return [trial for trial in trials if trial.verdict == "VALID" and trial.measure]


def title(cell: Cell) -> str:
    """A cell in one line."""
    return " · ".join(getattr(cell, field) for field in FIELDS)


def why_not(trials: Sequence[Outcome]) -> str:
    """Why a cell has no trial that counts."""
    if not trials:
        return "not played"
    reasons = [
        trial.reason or "; ".join(trial.reasons) or (trial.verdict or trial.state)
        for trial in trials
    ]
    return " ".join(reasons[0].split())


def figures_for(names: Sequence[str], trials: Sequence[Outcome]) -> list[Figure]:
    """The figures that were asked for; else what tells trials of such loads apart."""
    if names:
        return [FIGURES[name] for name in names]
    closed = all(trial.load.schedule == "closed" for trial in trials)
    return [FIGURES[name] for name in (_CLOSED if closed else _OPEN)]
