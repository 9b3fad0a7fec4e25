"""Whether a client can run on this machine, as its own worker says."""

from __future__ import annotations

from cachemark.endpoints.clients import Client
from cachemark.endpoints.worker import Worker
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.protocol import Ready

_HELLO_S = 20.0


def query_worker(client: Client) -> tuple[Ready | None, str]:
    """What the client's worker reports; or None, and why it cannot run and what to do about it."""
    if missing := client.missing():
        return None, _with_remedy(missing.removeprefix(f"{client.id}: "), client.setup)
    try:
        with Worker(client.command, name=client.id) as worker:
            ready = worker.hello(_HELLO_S)
            worker.bye()
    except UnsupportedError as error:
        return None, _with_remedy(error.text.removeprefix(f"{client.id}: "), error.remedy)
    except TrialError as error:
        return None, f"failed: {error.text}"
    return ready, "ready"


def _with_remedy(reason: str, remedy: str) -> str:
    return f"{reason}: {remedy}" if remedy else reason
