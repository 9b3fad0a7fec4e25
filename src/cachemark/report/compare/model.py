"""The contents of a comparison, before they are rendered."""

from __future__ import annotations

import msgspec

from cachemark.analysis.statistics import Contrast
from cachemark.model.outcome import Cell


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cell and its baseline; across runs, both have the same names."""

    baseline: Cell
    other: Cell
    contrasts: list[Contrast]


class ComparisonReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison: one family of tests.

    `lost`: cells that have valid trials in the baseline only. `left_out`: cells that cannot be
    compared. `differences`: differences between the conditions of the runs.
    """

    baseline: str
    other: str
    paired: bool
    margin_percent: float
    tests: int
    rows: list[ComparisonRow]
    lost: list[str] = []
    left_out: list[str] = []
    differences: list[str] = []
    notes: list[str] = []

    @property
    def regressed(self) -> bool:
        """Whether a figure is worse beyond the margin, or a cell is lost."""
        found = any(c.answer == "worse" for row in self.rows for c in row.contrasts)
        return found or bool(self.lost)
