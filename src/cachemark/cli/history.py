"""`cachemark history`: show the same cells over time, machines and versions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.analysis.statistics import FigureName
from cachemark.cli import completers
from cachemark.cli.document_forms import DocumentForms
from cachemark.cli.output import progress_lines
from cachemark.model.errors import UsageError
from cachemark.report.history import RENDERERS, HistoryQuery, RunIndex, query_history
from cachemark.runs.resilience.stored import RunFolder

_ONLY = "only these (may be repeated; * matches anything)"


@dataclass(frozen=True)
class Where:
    """The cells and the machines to show."""

    server: Annotated[tuple[str, ...], Parameter(help=_ONLY)] = ()
    workload: Annotated[tuple[str, ...], Parameter(help=_ONLY)] = ()
    load: Annotated[tuple[str, ...], Parameter(help=_ONLY)] = ()
    host: Annotated[tuple[str, ...], Parameter(help=_ONLY)] = ()


def history(
    *names: Annotated[
        str,
        Parameter(
            completer=completers.clients,
            help="a client, or a cell as reports print it; default: list all runs",
        ),
    ],
    where: Annotated[Where | None, Parameter(name="*")] = None,
    figure: Annotated[
        tuple[FigureName, ...],
        Parameter(help="figures (may be repeated), instead of rate and p99 (open "
                  "loop: p50 and p99); the first is compared with the previous run"),
    ] = (),
    last: Annotated[int | None, Parameter(help="only this number of runs of each cell")] = None,
    rebuild: Annotated[bool, Parameter(help="read all runs again, not only new ones")] = False,
    forms: Annotated[DocumentForms | None, Parameter(name="*")] = None,
    folder: Annotated[Path, Parameter(name="--runs", help="folder of all runs")] = Path("results"),
) -> None:  # fmt: skip
    """List all runs, or show cells over time: each run is compared with the previous one.

    Only runs of the same machine are compared.
    """
    if last is not None and last < 1:
        raise UsageError(f"--last {last}: at least 1", "such as --last 10")
    of = where or Where()
    asked = HistoryQuery(
        names=names,
        server=of.server,
        workload=of.workload,
        load=of.load,
        host=of.host,
        figures=figure,
        last=last,
    )
    with (
        progress_lines() as progress,
        RunIndex(RunFolder(folder), rebuild=rebuild, progress=progress) as index,
    ):
        lines = query_history(index, asked)
    (forms or DocumentForms()).write(lines, RENDERERS)
