"""`cachemark calibrate CLIENT…`: measure the clients' own cost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from rich.markup import escape

from cachemark.cli import completers
from cachemark.cli.output import console, print_text
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.facts import facts
from cachemark.host.placement import halves, usable_cpus
from cachemark.host.temporary import temporary_folder
from cachemark.model.calibration import Calibration
from cachemark.model.client_name import NATIVE
from cachemark.model.errors import UsageError
from cachemark.report.calibration import calibration_columns, calibration_row
from cachemark.report.console import plain_console
from cachemark.report.json_text import json_text
from cachemark.report.terminal import print_table
from cachemark.runs.calibrate.sweep import CalibrationSettings
from cachemark.runs.calibrate.sweep import calibrate as play
from cachemark.runs.storage.store import append_calibration
from cachemark.runs.tapes import TapeCache

_Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def calibrate(
    *clients: Annotated[
        str, Parameter(completer=completers.clients, help="clients; `cachemark clients` lists them")
    ],
    client: completers.ClientOption = (),
    threads: _Count = 1,
    connections: Annotated[
        _Count | None, Parameter(help="total number; default: one for each thread")
    ] = None,
    depth: _Count = 1,
    window_ms: Annotated[
        _Count, Parameter(help="length of each measured window, in ms (low rates need longer ones)")
    ] = 1000,
    budget_us: Annotated[
        _Count, Parameter(help="limit of the client's own delay at p99.9, in µs")
    ] = 100,
    runs: Annotated[Path, Parameter(name=["--runs", "--out"], help="folder of all runs")] = Path(
        "results"
    ),
    json: Annotated[bool, Parameter(help="print the results as JSON")] = False,
) -> int:
    """Measure the clients' own cost, and the highest rate at which they are on time.

    Each client plays against a responder that answers every request with the same bytes. First a
    closed loop gives the client's floor. Then open loops with rising rates run until the send lag
    at p99.9 exceeds the budget. The results are stored beside the runs, and reports show them.
    The exit status is 1 if a client could not be measured.
    """
    specs = _network_clients((*clients, *client) or (NATIVE,))
    server_cpus, worker_cpus = halves(usable_cpus())
    settings = CalibrationSettings(
        threads=threads,
        connections=connections or threads,
        depth=depth,
        window_ms=window_ms,
        budget_ns=budget_us * 1000,
        server_cpus=server_cpus,
        worker_cpus=worker_cpus,
    )
    calibrations = _calibrate_all(specs, settings, runs)
    if json:
        print_text(json_text(calibrations))
    else:
        rows = [calibration_row(each) for each in calibrations]
        print_table(console(), calibration_columns(), rows)
    return 1 if any(calibration.floor is None for calibration in calibrations) else 0


def _network_clients(names: Sequence[str]) -> list[ClientSpec]:
    """The clients with these names. Raises UsageError, also for a client that uses no server."""
    known = registry(process.binary_path())
    specs = [parse_client(text, known) for text in names]
    inside = [spec.text for spec in specs if spec.client.in_process]
    if inside:
        raise UsageError(
            f"{inside[0]} is a cache inside the process: it uses no server", "leave it out"
        )
    return specs


def _calibrate_all(
    specs: Sequence[ClientSpec], settings: CalibrationSettings, runs: Path
) -> list[Calibration]:
    """Calibrate the clients one after the other; each result is stored at once."""
    found = facts()
    console = plain_console(stderr=True)
    calibrations: list[Calibration] = []
    for spec in specs:
        with temporary_folder() as folder, console.status(escape(spec.text)) as status:
            tapes = TapeCache(process.binary_path(), folder)
            text = escape(spec.text)
            calibration = play(
                spec, settings, tapes, found, lambda what, t=text: status.update(f"{t}: {what}")
            )
        append_calibration(runs, calibration)
        calibrations.append(calibration)
    return calibrations
