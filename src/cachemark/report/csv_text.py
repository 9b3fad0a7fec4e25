"""Rows as CSV text. No text in it is a formula for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from cachemark.model.foreign_text import clean


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows, each with a line feed at its end."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([clean(cell, "csv") if isinstance(cell, str) else cell for cell in row])
    return out.getvalue()
