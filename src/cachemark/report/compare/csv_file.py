"""A comparison as CSV: a line for each cell and figure; times in ns, CPU in µs, memory in bytes."""

from cachemark.analysis.statistics import Comparison
from cachemark.report.cells import CELL_FIELDS
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.csv_text import csv_text, figure_text, interval_texts

_SIDE = ("", "_low", "_high")
COLUMNS = (
    *[f"baseline_{field}" for field in CELL_FIELDS],
    *CELL_FIELDS,
    "figure",
    *[f"baseline{end}" for end in _SIDE],
    *[f"other{end}" for end in _SIDE],
    *[f"ratio{end}" for end in _SIDE],
    *("p", "p_holm", "together_low", "together_high", "bound"),
    *("baseline_trials", "other_trials", "answer", "reason"),
)


def render(compared: ComparisonReport) -> str:
    """The comparison as CSV text."""
    rows = [_line(row, of) for row in compared.rows for of in row.comparisons]
    return csv_text([COLUMNS, *rows])


def _line(row: ComparisonRow, of: Comparison) -> list[object]:
    return [
        *[getattr(row.baseline, field) for field in CELL_FIELDS],
        *[getattr(row.other, field) for field in CELL_FIELDS],
        of.figure,
        *interval_texts(of.second_value),
        *interval_texts(of.first_value),
        *interval_texts(of.ratio),
        figure_text(of.ratio.p if of.ratio else None),
        figure_text(of.p_holm),
        *interval_texts(of.together)[1:],
        figure_text(of.bound if of.ratio else None),
        *of.counts[::-1],
        of.answer if of.ratio else "",
        of.why,
    ]
