"""A comparison as CSV: a line for each cell and figure; times in ns, CPU in µs, memory in bytes."""

from __future__ import annotations

from cachemark.analysis.statistics import Comparison, Interval
from cachemark.report.cells import CELL_FIELDS
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.csv_text import csv_text

_SIDE = ("", "_low", "_high")
COLUMNS = (
    *[f"baseline_{field}" for field in CELL_FIELDS],
    *CELL_FIELDS,
    "figure",
    *[f"baseline{end}" for end in _SIDE],
    *[f"other{end}" for end in _SIDE],
    *[f"ratio{end}" for end in _SIDE],
    "p",
    "p_holm",
    "baseline_trials",
    "other_trials",
    "answer",
    "reason",
)


def render(compared: ComparisonReport, width: int | None) -> str:
    """The comparison as CSV text; `width` is not used."""
    del width
    rows = [_line(row, of) for row in compared.rows for of in row.comparisons]
    return csv_text([COLUMNS, *rows])


def _line(row: ComparisonRow, of: Comparison) -> list[object]:
    return [
        *[getattr(row.baseline, field) for field in CELL_FIELDS],
        *[getattr(row.other, field) for field in CELL_FIELDS],
        of.figure,
        *_interval(of.second_value),
        *_interval(of.first_value),
        *_interval(of.ratio),
        _float_text(of.ratio.p if of.ratio else None),
        _float_text(of.p_holm),
        *of.counts[::-1],
        of.answer if of.ratio else "",
        of.why,
    ]


def _interval(of: Interval | None) -> list[str]:
    return [_float_text(part) for part in ((of.value, of.low, of.high) if of else (None,) * 3)]


def _float_text(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
