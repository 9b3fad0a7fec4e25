"""The process of `cachemark web`: its socket, low priority and end, and a drive that it shows."""

import asyncio
import contextlib
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from cachemark.host.placement import run_on
from cachemark.host.process import parse_cpus
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import UsageError
from cachemark.runs.events.drive_lines import follow
from cachemark.runs.events.log import EventLog
from cachemark.web.app import make_app
from cachemark.web.context import Context
from cachemark.web.settings import WebSettings

# Time limit for the head of a request, and for a connection without a request.
HEAD_S = 10.0
# A browser keeps six connections to a server; several visitors may share an address. All addresses
# together leave room for requests below the server's limit.
WAITING_OF_AN_ADDRESS, WAITING = 32, 96


class LimitedProtocol(H11Protocol):
    """HTTP of one connection, whose peer has a limited time for the head of each request.

    The number of waiting connections is limited, for each address and in all. One more ends the
    connection that has waited longest, so that silent peers keep no visitor out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and make room."""
        super().connection_made(transport)
        self._expect_head()
        known = cast("set[LimitedProtocol]", self.connections)
        waiting = sorted((it for it in known if it.waits), key=lambda it: it.waits_since_s)
        own = [it for it in waiting if it.address == self.address]
        for oldest in {*waiting[:-WAITING], *own[:-WAITING_OF_AN_ADDRESS]}:
            oldest.transport.abort()
            # The loop reports the lost connection later, but its place is free now.
            self.connections.discard(oldest)

    def on_response_complete(self) -> None:
        """End a response, and wait for the next request."""
        super().on_response_complete()
        self._expect_head()

    @property
    def waits(self) -> bool:
        """Whether the connection waits for a request."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    @property
    def address(self) -> str:
        """The peer's address."""
        return self.client[0] if self.client else ""

    def _expect_head(self) -> None:
        # By the clock of the loop.
        self.waits_since_s = self.loop.time()
        self.loop.call_later(HEAD_S, self._end_if_silent, self.cycle)

    def _end_if_silent(self, last: object) -> None:
        if self.cycle is last and not self.transport.is_closing():
            self.transport.abort()


_NICENESS = 19
_MOST_CONNECTIONS = 128
# Time to finish answers when the server ends.
_GRACE_S = 2


def bound_socket(settings: WebSettings) -> socket.socket:
    """A socket on the address of the settings. Raises UsageError."""
    try:
        addresses = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Visitors may come before the first answer is ready.
        listener.listen(_MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"{settings.host}:{settings.port}: cannot listen there: {error}",
            "choose another --port; 0 takes any free one",
        ) from error
    return listener


class WebServer:
    """A server, and the thread that it runs in, from entering until leaving.

    The thread, and the threads and processes that it starts, have the lowest priority, and a core
    of their own if there are three or more: measurements on this machine come first.
    """

    def __init__(self, settings: WebSettings) -> None:
        context = Context(settings)
        self._server = uvicorn.Server(_config(context))
        self._listening = bound_socket(settings)
        self.player, self._cpus = context.player, context.cpus
        self._closing = context.closing
        self._thread = threading.Thread(target=self._run, name="web")
        host, port = self._listening.getsockname()[:2]
        # No browser can open the address that stands for all addresses.
        host = socket.gethostname() if ipaddress.ip_address(host).is_unspecified else host
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{settings.scheme}://{shown}:{port}"

    def __enter__(self) -> "WebServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.player.close()
        self._closing.set()
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
            if self._cpus:
                run_on(parse_cpus(self._cpus))
        try:
            self._server.run(sockets=[self._listening])
        finally:
            self.player.close()


def serve(settings: WebSettings, announce: Callable[[str], None]) -> None:
    """Serve until the process is interrupted, which is the usual end.

    Meanwhile this thread, which must be the main one, plays the runs that pages start. `announce`
    gets the address.
    """
    with contextlib.suppress(KeyboardInterrupt), WebServer(settings) as server:
        announce(server.address)
        server.player.play()


def _config(context: Context) -> uvicorn.Config:
    """The configuration, with its certificate loaded. Raises UsageError."""
    settings = context.settings
    config = uvicorn.Config(
        make_app(context),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=LimitedProtocol,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_S,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    try:
        config.load()
    except OSError as error:
        raise UsageError(
            f"--tls-cert {settings.tls_cert}, --tls-key {settings.tls_key}: not usable: {error}",
            "both are PEM files, and the key belongs to the certificate",
        ) from error
    return config


@contextmanager
def events_of_drive(descriptor: int) -> Generator[Path]:
    """A folder with the events of a drive, whose lines come from a file descriptor."""
    # Not sys.stdin: Python would wait for its lock at the end.
    stream = open(descriptor, "rb", closefd=False)  # noqa: SIM115
    with temporary_folder() as folder:
        threading.Thread(
            target=follow, args=(stream, EventLog(folder)), name="drive", daemon=True
        ).start()
        yield folder
