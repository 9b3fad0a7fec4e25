"""`cachemark clients`: list all clients, and what each needs to run on this machine."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from cachemark.cli.output import console
from cachemark.endpoints.client_readiness import query_worker
from cachemark.endpoints.clients import Client, registry
from cachemark.endpoints.wire import supported_wires
from cachemark.host import process

_NOTES = ("note", "its own default settings")
_COLUMNS = ("client", "library", "version", "released", "protocols", "callers", "state")


def clients(
    *,
    notes: Annotated[
        bool,
        Parameter(negative="", help="show a note on each client, and its own settings"),
    ] = False,
) -> None:
    """List the clients: library and version as the worker reports them, or how to install them."""
    table = Table(box=None, pad_edge=False)
    for column in (*_COLUMNS, *(_NOTES if notes else ())):
        table.add_column(column, overflow="fold", no_wrap=column not in ("state", *_NOTES))
    for client in registry(process.binary_path()).values():
        table.add_row(*_row(client), *([client.note, client.defaults] if notes else []))
    console().print(table)


def _row(client: Client) -> list[str]:
    ready, state = query_worker(client)
    protocols = supported_wires(ready) if ready else []
    return [
        client.id,
        ready.library if ready else "–",
        ready.library_version if ready else "–",
        client.released or "–",
        "in process" if protocols == ["none"] else " ".join(protocols) or "–",
        client.concurrency,
        state,
    ]
