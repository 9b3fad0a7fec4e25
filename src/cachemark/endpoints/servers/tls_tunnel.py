"""A way without TLS to a server with TLS, for checks that send their own bytes or read others'.

Nothing may be timed through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from contextlib import contextmanager

from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import LOOPBACK
from cachemark.endpoints.servers.tls import Tls
from cachemark.model.address import parse_host_port

_CHUNK_BYTES = 1 << 16


@contextmanager
def unencrypted(server: RunningServer) -> Generator[RunningServer]:
    """The same server at addresses of this machine that take bytes without TLS.

    A server without TLS is given back as it is.
    """
    if server.tls is None:
        yield server
        return
    with _tunnels(server.addresses, server.tls) as addresses:
        yield RunningServer(addresses, server.facts, server.members)


@contextmanager
def _tunnels(addresses: list[str], tls: Tls) -> Generator[list[str]]:
    """One tunnel for each address, all in one thread."""
    loop = asyncio.new_event_loop()
    listeners = [
        loop.run_until_complete(asyncio.start_server(_Tunnel(address, tls).carry, LOOPBACK, 0))
        for address in addresses
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

    def __init__(self, address: str, tls: Tls) -> None:
        self._host, self._port = parse_host_port(address)
        self._name = tls.name or self._host
        self._context = tls.context()

    async def carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with contextlib.closing(back), contextlib.suppress(OSError, asyncio.CancelledError):
            far, there = await asyncio.open_connection(
                self._host, self._port, ssl=self._context, server_hostname=self._name
            )
            with contextlib.closing(there):
                # The end of either direction ends both: TLS has no half of a connection.
                ways = {
                    asyncio.create_task(_copy(near, there)),
                    asyncio.create_task(_copy(far, back)),
                }
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK_BYTES):
        sink.write(chunk)
        await sink.drain()
