"""A run of `resilience` in all forms, and the files beside its pages."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.resilience.cell import CellName, CellOutcome
from cachemark.analysis.resilience.figures import Figures
from cachemark.report.csv_text import csv_text
from cachemark.report.document import Document, DocumentPart
from cachemark.report.forms import forms
from cachemark.report.json_text import json_text
from cachemark.report.resilience.known_issues import issues_of
from cachemark.report.resilience.matrix import (
    MatrixCell,
    MatrixRow,
    matrix,
    matrix_table,
    reasons,
    why_lines,
)

# Counts by result have no column of their own.
_FIGURES = tuple(name for name in Figures.__struct_fields__ if name not in ("during", "after"))
_PLAYED = ("library", "library_version", "runtime", "wire", "server", "verdict")
COLUMNS = (
    *CellName.__struct_fields__, *_PLAYED, "rules", "note", "jobs", "disturbed", *_FIGURES, "replay"
)  # fmt: skip
_CELL = ("fault", "verdict", "times", "sittings", "note")


class ResilienceReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of all sittings, the faults in their order, and about_run's line."""

    outcomes: Sequence[CellOutcome]
    faults: Sequence[str]
    about: str

    @property
    def rows(self) -> list[MatrixRow]:
        """A row for each client and profile, worst first."""
        return matrix(self.outcomes, self.faults)


def document(report: ResilienceReport) -> Document:
    """A table of the clients that were played, why cells are not safe, and what was not played."""
    rows = report.rows
    table = matrix_table(rows, report.faults)
    unplayed = [
        f"{row.client} ({row.profile}) is not played: {row.unsupported}"
        for row in rows
        if row.unsupported
    ]
    below = [*why_lines(rows), *unplayed]
    return Document(
        title="What clients do when their server fails",
        lines=[report.about],
        parts=[DocumentPart(table=table if table.rows else None, whole=True, items=below)],
    )


def _csv(report: ResilienceReport) -> str:
    """A line for each sitting of each cell, with the figures; units are in the names."""
    outcomes = [one for row in report.rows for cell in row.cells for one in cell.outcomes]
    return csv_text([COLUMNS, *(_line(outcome) for outcome in outcomes)])


RENDERERS = forms(
    document, {"csv": _csv, "json": lambda report: json_text(report.outcomes)}, name="resilience"
)


def exports(report: ResilienceReport) -> dict[str, str]:
    """The files beside the pages. The JSON has a cell for each fault, not for each sitting."""
    return {
        "matrix.csv": _csv(report),
        "matrix.json": json_text([_row(row) for row in report.rows]),
        "matrix.md": RENDERERS["markdown"](report, None),
    }


def _line(outcome: CellOutcome) -> list[object]:
    return [
        *msgspec.structs.astuple(outcome.name),
        *[getattr(outcome, field) for field in _PLAYED],
        "; ".join(finding.rule for finding in outcome.findings),
        outcome.failed or outcome.unsupported or outcome.not_applicable,
        outcome.jobs,
        outcome.disturbed,
        *[getattr(outcome.figures, field, None) for field in _FIGURES],
        outcome.name.replay,
    ]


def _row(row: MatrixRow) -> dict[str, object]:
    return {
        **{name: getattr(row, name) for name in ("client", "profile", "library", "unsupported")},
        "known_issues": [issue.url for issue in issues_of(row.client, row.library_version)],
        "cells": [_cell(cell) for cell in row.cells],
    }


def _cell(cell: MatrixCell) -> dict[str, object]:
    """One fault: the worst verdict of the sittings, how many had it, and why."""
    known = {name: getattr(cell, name) for name in _CELL}
    return {**known, "why": list(reasons(cell.outcomes))}
