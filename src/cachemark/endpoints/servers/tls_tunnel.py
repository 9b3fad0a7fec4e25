"""Tunnels to a server with TLS or login, for checks that send their own bytes. Never time them."""

import asyncio
import contextlib
import threading
from collections.abc import Generator
from contextlib import contextmanager

from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import LOOPBACK
from cachemark.model.address import parse_host_port
from cachemark.model.errors import TrialError

_CHUNK_BYTES = 1 << 16


@contextmanager
def unencrypted(server: RunningServer) -> Generator[RunningServer]:
    """The same server at addresses of this machine that need no TLS and no login.

    Returns a server without them as it is. Raises TrialError for one that takes no text.
    """
    if server.tls is None and server.login is None:
        yield server
        return
    if server.login and server.login.sasl:
        raise TrialError("its clients log in by SASL, and the checks speak text")
    with _tunnels(server) as addresses:
        yield RunningServer(addresses, server.facts, server.members)


@contextmanager
def _tunnels(server: RunningServer) -> Generator[list[str]]:
    """One tunnel for each address, all in one thread."""
    loop = asyncio.new_event_loop()
    listeners = [
        loop.run_until_complete(asyncio.start_server(_Tunnel(address, server).carry, LOOPBACK, 0))
        for address in server.addresses
    ]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield [f"{LOOPBACK}:{one.sockets[0].getsockname()[1]}" for one in listeners]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for one in listeners:
            one.close()
        loop.run_until_complete(_end_tasks())
        loop.close()


async def _end_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Tunnel:
    """Carries the connections to one server."""

    def __init__(self, address: str, server: RunningServer) -> None:
        self._address, self._tls, self._login = address, server.tls, server.login
        self._context = server.tls.context() if server.tls else None

    async def carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with (
            contextlib.closing(back),
            contextlib.suppress(OSError, EOFError, asyncio.CancelledError),
        ):
            far, there = await self._connect()
            with contextlib.closing(there):
                if self._login:
                    there.write(self._login.request())
                    await far.readuntil(b"\r\n")
                # The end of either direction ends both: TLS cannot close one direction alone.
                ways = {
                    asyncio.create_task(_copy(near, there)),
                    asyncio.create_task(_copy(far, back)),
                }
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._address.startswith("unix:"):
            return await asyncio.open_unix_connection(self._address.removeprefix("unix:"))
        host, port = parse_host_port(self._address)
        if self._context is None or self._tls is None:
            return await asyncio.open_connection(host, port)
        name = self._tls.name or host
        return await asyncio.open_connection(host, port, ssl=self._context, server_hostname=name)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK_BYTES):
        sink.write(chunk)
        await sink.drain()
