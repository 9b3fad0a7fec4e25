"""`cachemark explain`: how a figure was computed, or what a verdict or a rule means."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.analysis.verdict.explanations import Explanation, explanations
from cachemark.cli import completers
from cachemark.cli.output import print_sentences
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.cells import CELL_FIELDS, SEPARATOR, cell_title
from cachemark.report.explanation import explain_cell
from cachemark.report.formats import fits_together, load_report
from cachemark.runs.storage.store import Run, latest_run, open_run

_MAX_LISTED = 5
_LATEST = "latest"


def explain(
    what: Annotated[
        str | None,
        Parameter(
            completer=completers.runs_and_terms,
            help="a run's id or folder (default: `latest`), a verdict, a rule",
        ),
    ] = None,
    *cell: Annotated[
        str, Parameter(help="names of the cell: its client, server, workload, load, or its title")
    ],
    client: Annotated[
        str | None, Parameter(completer=completers.in_run("clients"), help="the cell's client")
    ] = None,
    server: Annotated[
        str | None, Parameter(completer=completers.in_run("servers"), help="the cell's server")
    ] = None,
    workload: Annotated[
        str | None, Parameter(completer=completers.in_run("workloads"), help="the cell's workload")
    ] = None,
    load: Annotated[
        str | None, Parameter(completer=completers.in_run("loads"), help="the cell's load")
    ] = None,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
) -> None:
    """Explain how a figure was computed, or what a verdict (INVALID) or a rule (steal) means."""
    if what is not None and (found := _term(what)) is not None:
        print_sentences(f"{what}: {found.meaning}" + (f"\n{found.remedy}" if found.remedy else ""))
        return
    run = latest_run(runs) if what is None or what == _LATEST else _run(what, runs)
    outcomes = run.outcomes()
    wanted = {"client": client, "server": server, "workload": workload, "load": load}
    names = [name for title in cell for name in title.split(SEPARATOR)]
    found_cell = _cell(outcomes, {n: text for n, text in wanted.items() if text is not None}, names)
    report = load_report(run)
    with fits_together(run):
        lines = explain_cell(report, outcomes, found_cell)
    print_sentences("\n".join(lines))


def _term(text: str) -> Explanation | None:
    known = explanations()
    verdict = known.verdicts.get(text.upper().replace("-", "_"))
    # A finding of the kernel's log also names what it found.
    word = text.lower().partition(" ")[0]
    return verdict or known.states.get(word) or known.rules.get(word)


def _run(name: str, runs: Path) -> Run:
    try:
        return open_run(name, runs)
    except UsageError as error:
        known = ", ".join(explanations().names)
        text = f"{name!r} is no run, no verdict and no rule"
        raise UsageError(text, f"known: {known}") from error


def _cell(outcomes: Sequence[Outcome], wanted: dict[str, str], names: Sequence[str]) -> Cell:
    """The one cell with these fields, and with these names in any field. Raises UsageError."""
    cells = dict.fromkeys(outcome.trial.cell for outcome in outcomes)
    matching = [
        cell
        for cell in cells
        if all(getattr(cell, field) == text for field, text in wanted.items())
        and set(names) <= {getattr(cell, field) for field in CELL_FIELDS}
    ]
    if len(matching) == 1:
        return matching[0]
    listed = "\n  ".join(cell_title(cell) for cell in (matching or list(cells))[:_MAX_LISTED])
    options = ", ".join(f"--{field}" for field in CELL_FIELDS)
    if not matching:
        raise UsageError("the run has no such cell", f"it has, among others:\n  {listed}")
    raise UsageError(
        f"{len(matching)} cells: name one, with its title or with {options}",
        f"they are, among others:\n  {listed}",
    )
