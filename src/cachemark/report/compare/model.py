"""The contents of a comparison, before they are rendered."""

import msgspec

from cachemark.analysis.statistics import ALPHA, Comparison
from cachemark.model.outcome import Cell


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cell and its baseline; across runs, both have the same names.

    Each comparison is other / baseline, and its answer is about the other.
    """

    baseline: Cell
    other: Cell
    comparisons: list[Comparison]

    @property
    def is_unanswered(self) -> bool:
        """Whether it has a ratio for which no answer is sought."""
        return any(of.ratio and not of.tested for of in self.comparisons)


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that makes a build fail: a gated figure that is worse or missing, or a lost cell.

    `figures`: the gated ones; none means all that are compared. With `fail_on_inconclusive`, a
    figure that is not settled fails too.
    """

    figures: tuple[str, ...] = ()
    fail_on_inconclusive: bool = False


# A new number where a field, a word or its meaning changes. 2: `contrasts` are `comparisons`, with
# `first` (the other) and `second` (the baseline); `better`, `worse`, `equal` and `open` are the
# answers (before: `equivalent`, `inconclusive`); margins are symmetric on logarithms.
SCHEMA = 2


class ComparisonReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison. `tests` is the number of tests in the largest figure's family.

    `level` is the significance level of each test: intervals have the confidence 1 − level. It is
    stricter than 0.05 for runs in rounds that were looked at more than once.

    `lost`: what has valid trials in the baseline only, in words; `lost_cells` are the cells that
    have none at all. `left_out` and `left_out_cells`: what cannot be compared. `differences`:
    differences between the conditions of the runs. `gate`: what decides the exit status.
    `sittings`: how many sittings had both builds in turns; None for stored runs.
    """

    baseline: str
    other: str
    paired: bool
    margin_percent: float
    level: float = ALPHA
    tests: int
    rows: list[ComparisonRow]
    lost: list[str] = []
    lost_cells: list[Cell] = []
    left_out: list[str] = []
    left_out_cells: list[Cell] = []
    differences: list[str] = []
    notes: list[str] = []
    gate: Gate | None = None
    sittings: int | None = None

    @property
    def regressed(self) -> bool:
        """Whether a figure is worse beyond the margin, or a cell is lost."""
        worse = any(c.answer == "worse" for row in self.rows for c in row.comparisons)
        return worse or bool(self.lost)
