"""`cachemark clients`: every client that can be measured, and what each needs to run here."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from cachemark import process
from cachemark.clients import Client, registry
from cachemark.errors import TrialError, UnsupportedError
from cachemark.worker import Worker

_HELLO_S = 20.0


def clients() -> None:
    """List the clients: library and version as the worker itself tells them, or how to get it."""
    table = Table(box=None, pad_edge=False)
    for column in ("client", "library", "version", "runtime", "api", "state"):
        table.add_column(column, overflow="fold")
    for client in registry(process.binary_path()).values():
        table.add_row(*_row(client))
    Console().print(table)


def _row(client: Client) -> list[str]:
    known = [client.id, client.library]
    if missing := client.missing():
        return [*known, "–", "–", client.api, _cannot(missing, client.setup)]
    try:
        with Worker(client.command, name=client.id) as worker:
            ready = worker.hello(_HELLO_S)
            worker.bye()
    except UnsupportedError as error:
        return [*known, "–", "–", client.api, _cannot(error.text, error.remedy)]
    except TrialError as error:
        return [*known, "–", "–", client.api, f"failed: {error.text}"]
    return [*known, ready.library_version, ready.runtime, client.api, client.note or "ready"]


def _cannot(reason: str, remedy: str) -> str:
    return f"{reason}: {remedy}" if remedy else reason
