"""The agent of a host: a Dask worker with one thread, which carries out a coordinator's requests.

When the connection to the coordinator ends, for any reason, all servers and workers that the
agent has started are killed at once.
"""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable

from distributed import Worker

from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.hosts import Host, Hosts
from cachemark.model.machine_limits import Check
from cachemark.runs.agents.dask_settings import NOWHERE, RESOURCE, configure
from cachemark.runs.agents.security import SCHEME, security, tls_context
from cachemark.runs.agents.session import Session, use_session

_RETRY_S = 0.5
_CONNECT_S = 5.0


def serve(
    hosts: Hosts,
    name: str,
    examine: Callable[[], list[Check]],
    *,
    once: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve coordinators, one after the other; with `once` only the first.

    `examine` says whether this machine is fit to measure, when a coordinator asks.

    Raises UsageError if this host cannot be an agent, or the coordinator refuses it.
    """
    entry = hosts.named(name)
    security(hosts, name)  # a missing certificate ends it at once
    os.environ.update(entry.environment)
    configure()
    while True:
        announce(
            f"{name}: waits for a coordinator on {hosts.coordinator.address}:"
            f"{hosts.coordinator.port}"
        )
        _wait_for_coordinator(hosts, name)
        with temporary_folder() as folder, Session(entry, examine) as session:
            use_session(session)
            announce(f"{name}: connected")
            try:
                asyncio.run(be_agent(hosts, entry, session, str(folder)))
            except ValueError as error:
                # Dask's word for a name that another worker has.
                raise UsageError(
                    f"the coordinator refuses the agent {name!r}: another agent has this name",
                    "stop that one, or name this host differently",
                ) from error
            finally:
                session.abort()
                use_session(None)
        announce(f"{name}: the coordinator is gone")
        if once:
            return


async def be_agent(hosts: Hosts, entry: Host, session: Session, folder: str) -> None:
    """Be a Dask worker until the coordinator closes it, or is gone."""

    class AgentWorker(Worker):
        async def close(self, *arguments: object, **options: object) -> str | None:
            # Before all else: a task that waits for its processes would delay the next steps.
            session.abort()
            return await super().close(*arguments, **options)  # pyright: ignore

    coordinator = hosts.coordinator
    worker = AgentWorker(
        f"{SCHEME}://{coordinator.address}:{coordinator.port}",
        name=entry.name,
        host=entry.address,
        port=entry.port,
        nthreads=1,
        resources={RESOURCE: 1},
        memory_limit=0,
        dashboard_address=NOWHERE,
        dashboard=False,
        security=security(hosts, entry.name),
        local_directory=folder,
    )

    async def abort_trial() -> str:
        session.abort()
        return "OK"

    worker.handlers["abort_trial"] = abort_trial
    async with worker:
        worker.http_server.stop()
        await worker.finished()


def _wait_for_coordinator(hosts: Hosts, name: str) -> None:
    """Return when the coordinator listens and accepts this host. Raises UsageError if it refuses.

    Dask's own attempts go on for ever without a word.
    """
    context = tls_context(hosts, name)
    address = (hosts.coordinator.address, hosts.coordinator.port)
    while True:
        try:
            with socket.create_connection(address, _CONNECT_S) as plain:
                _greet(plain, context)
                return
        except ssl.SSLEOFError:  # a coordinator that is ending
            time.sleep(_RETRY_S)
        except ssl.SSLError as error:
            raise UsageError(
                f"the coordinator at {address[0]}:{address[1]} and this host do not accept each "
                f"other's certificates: {error.reason or error}",
                "copy the folder of one `cachemark hosts certs` to all hosts",
            ) from error
        except (OSError, TrialError):
            time.sleep(_RETRY_S)


def _greet(plain: socket.socket, context: ssl.SSLContext) -> None:
    """Read the first byte, which a scheduler sends only to hosts that it accepts."""
    connection = context.wrap_socket(plain)
    try:
        if not connection.recv(1):
            raise TrialError("the coordinator closed the connection")
    finally:
        connection.close()
