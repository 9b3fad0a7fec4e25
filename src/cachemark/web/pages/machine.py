"""This machine: the clients and servers that are ready here, and the doctor's findings."""

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from cachemark.model.machine_limits import Check
from cachemark.report.document import Table, plain_table
from cachemark.runs.parties import all_clients, client_state, server_kinds
from cachemark.web.context import context
from cachemark.web.guard import form_of
from cachemark.web.layout import page
from cachemark.web.verbs import run_verb

_DOCTOR_S = 1800.0


def machine_page(request: Request) -> Response:
    """The clients and the servers."""
    return page(context(request).settings, "machine", tables=_tables(), checks=None)


async def doctor_page(request: Request) -> Response:
    """The same, after the doctor has measured the machine."""
    here = context(request)
    await form_of(request, here.settings)
    await run_in_threadpool(here.take)
    try:
        checks = await run_in_threadpool(_checks)
        tables = await run_in_threadpool(_tables)
    finally:
        here.busy.release()
    return page(here.settings, "machine", tables=tables, checks=checks)


def _tables() -> dict[str, Table]:
    clients = [
        [client.id, client.language, client.concurrency, client_state(client)]
        for client in all_clients().values()
    ]
    servers = [[*kind] for kind in server_kinds()]
    return {
        "clients": plain_table(
            columns=["client", "language", "callers", "state"], rows=clients, prose=True
        ),
        "servers": plain_table(
            columns=["server", "what", "write", "state"], rows=servers, prose=True
        ),
    }


def _checks() -> list[Check]:
    said = run_verb("doctor", "--json", statuses=(0, 1), timeout_s=_DOCTOR_S)
    return msgspec.json.decode(said.stdout, type=list[Check])
