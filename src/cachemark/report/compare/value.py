"""What a comparison says, before it has a form."""

from __future__ import annotations

import msgspec

from cachemark.analysis.statistics import Contrast
from cachemark.model.outcome import Cell


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A cell against a baseline; across runs both have the same names."""

    baseline: Cell
    other: Cell
    contrasts: list[Contrast]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison: one family of tests.

    `lost` are cells that counted in the baseline and have no valid trial in the other; `left_out`
    those that cannot be compared; `differences` what else is not the same; `notes` what to mind.
    """

    baseline: str
    other: str
    paired: bool
    margin_percent: float
    tests: int
    rows: list[Row]
    lost: list[str] = []
    left_out: list[str] = []
    differences: list[str] = []
    notes: list[str] = []

    @property
    def regressed(self) -> bool:
        """Something is worse beyond the margin, or does not work any more."""
        found = any(c.answer == "worse" for row in self.rows for c in row.contrasts)
        return found or bool(self.lost)
