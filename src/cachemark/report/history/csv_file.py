"""A history as CSV: one line for each cell, run and figure, or for each run."""

import msgspec

from cachemark.report.cells import CELL_FIELDS
from cachemark.report.csv_text import csv_text, figure_text, interval_texts
from cachemark.report.history.model import CellHistory, Entry, History, RunRow

_ENTRY = (
    "folder", "created_at", "cachemark", "host", "machine", "library_version", "runtime",
    "server_version", "trials", "replays", "valid", "reason", "evictions",
)  # fmt: skip
COLUMNS = (*CELL_FIELDS, "work", *_ENTRY, "figure", "value", "low", "high", "ratio")


def render(history: History) -> str:
    """The history as CSV text."""
    if not history.lines:
        runs = [msgspec.structs.astuple(run) for run in history.runs]
        return csv_text([RunRow.__struct_fields__, *runs])
    rows = [row for line in history.lines for entry in line.entries for row in _rows(line, entry)]
    return csv_text([COLUMNS, *rows])


def _rows(line: CellHistory, entry: Entry) -> list[list[object]]:
    named = [*(getattr(line.cell, field) for field in CELL_FIELDS), line.work]
    entry_fields = [getattr(entry, field) for field in _ENTRY]
    return [
        [
            *named,
            *entry_fields,
            name,
            *interval_texts(entry.figures[name]),
            figure_text(entry.ratio_to_previous if name == line.figures[0] else None),
        ]
        for name in line.figures
    ]
