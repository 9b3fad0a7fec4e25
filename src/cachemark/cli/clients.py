"""`cachemark clients`: list all clients, and what each needs to run on this machine."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.cli.output import console, progress_lines
from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.client_readiness import Readiness, query_workers, recorded_readiness
from cachemark.endpoints.clients import Client, registry, workers_folder
from cachemark.host import process
from cachemark.report.console import print_words
from cachemark.report.document import Table, TableColumn
from cachemark.report.terminal import fitting, rich_table

_NOTES = ("note", "its own default settings", "lacks")
# A narrow terminal drops these columns, in this order; the others stay whole.
_SPARE = ("library", "callers", "released", "login", "version")
_COLUMNS = [
    TableColumn(
        name,
        words=True,
        spare=_SPARE.index(name) + 1 if name in _SPARE else 0,
        folds=name in ("state", *_NOTES),
    )
    for name in (
        *("client", "library", "version", "released", "protocols", "TLS", "login"),
        *("callers", "state", *_NOTES),
    )
]
# On a narrower terminal, notes are lines below the table.
_ROOM_FOR_NOTES = 160
_LOGINS = {"login_text": "text", "login_sasl": "SASL"}


def clients(
    *,
    notes: Annotated[
        bool,
        Parameter(
            help="show a note on each client, its own settings, and why it has no TLS or no logins"
        ),
    ] = False,
    check: Annotated[bool, Parameter(help="start each worker, and ask it again")] = False,
) -> None:
    """List the clients: library and version as the worker reports them, or how to install them.

    `cachemark setup` asks each worker, and records its answer. This command starts only workers
    whose files have changed since then.
    """
    folder = workers_folder()
    known = list(registry(process.binary_path(), folder).values())
    found = {} if check else recorded_readiness(known, folder)
    found |= _asked([client for client in known if client.id not in found], folder)
    out = console()
    beside = notes and out.width >= _ROOM_FOR_NOTES
    rows = [_row(client, found[client.id]) + _notes(client) for client in known]
    shown = range(len(_COLUMNS) - (0 if beside else len(_NOTES)))
    _print(out, Table(columns=_COLUMNS, rows=rows).only(shown))
    for client in known if notes and not beside else ():
        told = [
            f"{name}: {text}" for name, text in zip(_NOTES, _notes(client), strict=True) if text
        ]
        print_words(out, f"{client.id}: {'; '.join(told) or '–'}", wrapped=True)


def _notes(client: Client) -> list[str]:
    return [client.note, client.defaults, client.lacks]


def _print(out: Console, table: Table) -> None:
    """Print the columns that fit; a line says which do not."""
    out.print(rich_table(table, out.width))
    shown = fitting(table, out.width).titles
    if hidden := [name for name in table.titles if name not in shown]:
        print_words(out, f"A wider terminal, or a pipe, also has: {', '.join(hidden)}.")


def _asked(unknown: list[Client], folder: Path) -> dict[str, Readiness]:
    """Ask the workers of clients, and show how many have answered."""
    found: dict[str, Readiness] = {}
    with progress_lines() as progress:
        for client, readiness in query_workers(unknown, folder):
            found[client.id] = readiness
            progress(f"asking workers: {len(found)} of {len(unknown)} have answered")
    return found


def _row(client: Client, readiness: Readiness) -> list[str]:
    ready = readiness.ready
    protocols = supported_wires(ready) if ready else []
    claimed = ready.capabilities if ready else []
    return [
        client.id,
        ready.library if ready else "–",
        ready.library_version if ready else "–",
        client.released or "–",
        "in process" if protocols == ["none"] else " ".join(protocols) or "–",
        "TLS" if "tls" in claimed else "–",
        " ".join(_LOGINS[name] for name in claimed if name in _LOGINS) or "–",
        client.concurrency,
        readiness.state,
    ]
