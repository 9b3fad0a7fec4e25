"""Rows as CSV text. No text in it is a formula for a spreadsheet."""

import csv
import io
from collections.abc import Iterable

from cachemark.analysis.statistics import Interval
from cachemark.model.foreign_text import clean


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows, each with a line feed at its end."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([clean(cell, "csv") if isinstance(cell, str) else cell for cell in row])
    return out.getvalue()


def interval_texts(of: Interval | None) -> list[str]:
    """A figure and its bounds, each with six significant digits; empty where there is none."""
    return [figure_text(part) for part in ((of.value, of.low, of.high) if of else (None,) * 3)]


def figure_text(value: float | None) -> str:
    """A figure with six significant digits; empty where there is none."""
    return "" if value is None else f"{value:.6g}"
