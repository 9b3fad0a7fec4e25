"""`cachemark calibrate CLIENT…`: what clients cost against a server that costs nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
from cyclopts import Parameter, validators
from rich.markup import escape
from rich.table import Table

from cachemark import host
from cachemark.cli.output import console
from cachemark.endpoints.clients import NATIVE, parse_client, registry
from cachemark.host import process
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Placement
from cachemark.report.calibration import columns, row
from cachemark.report.console import plain_console
from cachemark.runs.calibrate import Calibration, Shape, append
from cachemark.runs.calibrate import calibrate as play
from cachemark.runs.tapes import TapeShelf

_Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def calibrate(
    *clients: Annotated[str, Parameter(help="clients, as `cachemark clients` lists them")],
    threads: _Count = 1,
    connections: Annotated[_Count | None, Parameter(help="by default one for each thread")] = None,
    depth: _Count = 1,
    window_ms: Annotated[_Count, Parameter(help="length of each measured window")] = 1000,
    budget_us: Annotated[_Count, Parameter(help="how late it may be at p99.9")] = 100,
    runs: Annotated[Path, Parameter(name=["--runs", "--out"], help="folder of all runs")] = Path(
        "results"
    ),
    json: Annotated[bool, Parameter(negative="", help="print them as JSON")] = False,
) -> int:
    """Measure what clients cost by themselves, and how fast they are on time.

    Each is played against a responder that answers without looking: its floor, then rising rates
    until its send lag at p99.9 exceeds the budget. Kept beside the runs, and shown in reports.
    The exit status is 1 when one could not be measured.
    """
    known = registry(process.binary_path())
    asked = [parse_client(text, known) for text in clients or (NATIVE,)]
    inside = [spec.text for spec in asked if spec.client.in_process]
    if inside:
        raise UsageError(f"{inside[0]} has no server to be measured against", "leave it out")
    usable = host.usable_cpus()
    server_cpus, worker_cpus = host.placement(Placement(), usable, host.cores(usable))
    shape = Shape(
        threads=threads,
        connections=connections or threads,
        depth=depth,
        window_ms=window_ms,
        budget_ns=budget_us * 1000,
        server_cpus=server_cpus,
        worker_cpus=worker_cpus,
    )
    facts = host.facts()
    console = plain_console(stderr=True)
    found: list[Calibration] = []
    for spec in asked:
        with TemporaryDirectory(prefix="cachemark-") as folder, console.status(spec.text) as status:
            shelf = TapeShelf(process.binary_path(), Path(folder))
            text = escape(spec.text)
            one = play(
                spec, shape, shelf, facts, lambda what, t=text: status.update(f"{t}: {what}")
            )
        append(runs, one)
        found.append(one)
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        _print(found)
    return 1 if any(one.floor is None for one in found) else 0


def _print(found: list[Calibration]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in columns():
        table.add_column(column, overflow="fold")
    for one in found:
        table.add_row(*[escape(cell) for cell in row(one)])
    console().print(table)
