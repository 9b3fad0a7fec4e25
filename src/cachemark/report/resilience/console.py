"""The matrix for a terminal, and the sentences that explain each cell that is not safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cachemark.analysis.resilience.cell import CellOutcome
from cachemark.analysis.resilience.verdict import VERDICTS
from cachemark.report.console import print_words
from cachemark.report.resilience.matrix import MatrixRow

COLOURS = {"unsafe": "bold red", "hangs": "red", "degraded": "yellow", "safe": "green"}


def print_matrix(out: Console, rows: Sequence[MatrixRow], faults: Sequence[str]) -> None:
    """Print the matrix, why cells are not safe, and why clients could not be played."""
    table = Table(box=None, pad_edge=False)
    table.add_column("client", overflow="fold")
    table.add_column("profile")
    for fault in faults:
        table.add_column(fault, overflow="fold")
    for row in rows:
        if not row.unsupported:
            cells = [_coloured(cell.text, cell.verdict or "") for cell in row.cells]
            table.add_row(escape(row.client), row.profile, *cells)
    if table.row_count:
        out.print(table)
    for row in rows:
        for cell in row.cells:
            for why in reasons(cell.outcomes):
                text = f"{row.client} ({row.profile}), {cell.fault}: {why}"
                print_words(out, text)
        if row.unsupported:
            text = f"{row.client} ({row.profile}) is not played: {row.unsupported}"
            print_words(out, text)


def reasons(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Why a cell is not safe: each rule once, with the sentence of its first sitting."""
    seen: set[str] = set()
    for outcome in outcomes:
        if outcome.failed:
            yield f"could not be judged: {outcome.failed}"
        for finding in sorted(outcome.findings, key=lambda f: VERDICTS.index(f.verdict)):
            if finding.rule not in seen:
                seen.add(finding.rule)
                whose = _whose(outcome) if finding.rule == "wrong value" else ""
                yield f"{finding.verdict}: {finding.why}{whose}"
        if outcome.disturbed and outcome.disturbed not in seen:
            seen.add(outcome.disturbed)
            yield f"this can come from the machine: {outcome.disturbed}"


def _whose(outcome: CellOutcome) -> str:
    first = next(iter(outcome.wrong_values), None)
    return f" (the first, of {first.key}: {first.what})" if first else ""


def _coloured(text: str, verdict: str) -> str:
    colour = COLOURS.get(verdict, "dim")
    return f"[{colour}]{escape(text)}[/]"
