"""`cachemark clients`: list all clients, and what each needs to run on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.progress import Progress
from rich.table import Table

from cachemark.cli.output import console
from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.client_readiness import Readiness, query_workers, recorded_readiness
from cachemark.endpoints.clients import Client, registry, workers_folder
from cachemark.host import process

_NOTES = ("note", "its own default settings")
_SHOWN = ("client", "library", "version", "released", "protocols", "TLS", "login")
_COLUMNS = (*_SHOWN, "callers", "state")
_LOGINS = {"login_text": "text", "login_sasl": "SASL"}


def clients(
    *,
    notes: Annotated[
        bool,
        Parameter(negative="", help="show a note on each client, and its own settings"),
    ] = False,
    check: Annotated[
        bool,
        Parameter(negative="", help="start each worker, and ask it again"),
    ] = False,
) -> None:
    """List the clients: library and version as the worker reports them, or how to install them.

    `cachemark setup` asks each worker, and records its answer. This command starts only workers
    whose files have changed since then.
    """
    folder = workers_folder()
    known = list(registry(process.binary_path(), folder).values())
    found = {} if check else recorded_readiness(known, folder)
    found |= _asked([client for client in known if client.id not in found], folder)
    table = Table(box=None, pad_edge=False)
    for column in (*_COLUMNS, *(_NOTES if notes else ())):
        table.add_column(column, overflow="fold", no_wrap=column not in ("state", *_NOTES))
    for client in known:
        row = _row(client, found[client.id])
        table.add_row(*row, *([client.note, client.defaults] if notes else []))
    console().print(table)


def _asked(unknown: list[Client], folder: Path) -> dict[str, Readiness]:
    """Ask the workers of clients, and show how many have answered."""
    if not unknown:
        return {}
    found: dict[str, Readiness] = {}
    with Progress(console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("asking workers", total=len(unknown))
        for client, readiness in query_workers(unknown, folder):
            found[client.id] = readiness
            progress.advance(task)
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
