"""The parts of a cell's name, and the name on one line."""

from __future__ import annotations

from cachemark.model.outcome import Cell

CELL_FIELDS = ("client", "server", "workload", "load")
SEPARATOR = " · "


def cell_title(cell: Cell) -> str:
    """A cell on one line: `client · server · workload · load`."""
    return SEPARATOR.join(getattr(cell, field) for field in CELL_FIELDS)
