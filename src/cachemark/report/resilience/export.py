"""The matrix for other programs and pages: CSV with a line for each played cell, JSON, Markdown."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.resilience.cell import CellName, CellOutcome, Profile
from cachemark.analysis.resilience.figures import Figures
from cachemark.analysis.resilience.verdict import ClientVerdict
from cachemark.model.foreign_text import clean, clean_all
from cachemark.report.csv_text import csv_text
from cachemark.report.json_text import json_text
from cachemark.report.markdown import one_line, table_lines
from cachemark.report.resilience.known_issues import issues_of
from cachemark.report.resilience.matrix import (
    MatrixCell,
    MatrixRow,
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


class _Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: the worst verdict of the sittings, how many had it, and why."""

    fault: str
    verdict: ClientVerdict | None
    times: int
    sittings: int
    note: str
    why: list[str]


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One client with one profile."""

    client: str
    profile: Profile
    library: str
    unsupported: str
    known_issues: list[str]
    cells: list[_Cell]


def exports(rows: Sequence[MatrixRow]) -> dict[str, str]:
    """The exports by file name."""
    return {
        "matrix.csv": matrix_csv(rows),
        "matrix.json": matrix_json(rows),
        "matrix.md": matrix_markdown(rows),
    }


def matrix_csv(rows: Sequence[MatrixRow]) -> str:
    """A line for each sitting of each cell, with the figures; units are in the names."""
    outcomes = [one for row in rows for cell in row.cells for one in cell.outcomes]
    return csv_text([COLUMNS, *(_line(outcome) for outcome in outcomes)])


def matrix_json(rows: Sequence[MatrixRow]) -> str:
    """A row for each client and profile, worst first, and in it a cell for each fault."""
    return json_text([_row(row) for row in rows])


def matrix_markdown(rows: Sequence[MatrixRow]) -> str:
    """A table of the played clients, and below it why cells are not safe."""
    played = [row for row in rows if not row.unsupported]
    if not played:
        return ""
    table = matrix_table(played, [cell.fault for cell in played[0].cells])
    whys = [f"- {one_line(clean(line, 'markdown'))}" for line in why_lines(played)]
    return "\n".join([*table_lines(clean_all(table, "markdown")), "", *whys]) + "\n"


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


def _row(row: MatrixRow) -> _Row:
    return _Row(
        client=row.client,
        profile=row.profile,
        library=row.library,
        unsupported=row.unsupported,
        known_issues=[issue.url for issue in issues_of(row.client, row.library_version)],
        cells=[_cell(cell) for cell in row.cells],
    )


def _cell(cell: MatrixCell) -> _Cell:
    return _Cell(
        fault=cell.fault,
        verdict=cell.verdict,
        times=cell.times,
        sittings=cell.sittings,
        note=cell.note,
        why=list(reasons(cell.outcomes)),
    )
