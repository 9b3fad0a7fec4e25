"""Miniature clients whose calls are awaited.

`closes` does nothing wrong; `keeps` is wrong about cancelled calls. A copy of this file in the
Python worker's folder is a client, whose name is its way.
"""

import asyncio

from client import BaseSession
from verify import PROTOCOL, found, network_fault, stored

LIBRARY, VERSION = "none", "1"
API = "async"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("open_loop",)
OPTIONS = {}
UNREACHABLE = OSError
# The ways to treat a connection whose reply is still to come.
KEEPS = __name__.rpartition(".")[2] == "keeps"

CALLS = {
    "get": lambda s, op: (s.get, (op.key,), found),
    "set": lambda s, op: (s.set, (op.key, op.value, op.exptime_s), stored),
}


class ReplyError(Exception):
    """The reply cannot be one to this request."""


class Session(BaseSession):
    """Connections that are idle, for all tasks."""

    def __init__(self, setup):
        self._setup = setup
        self._idle = []

    async def open(self):
        self._idle = [await self._connect() for _ in range(self._setup.connections)]

    async def _connect(self):
        return await asyncio.open_connection(self._setup.server.host, self._setup.server.port)

    async def get(self, key):
        return await self._call(b"get %b\r\n" % key, self._read_value)

    async def set(self, key, value, exptime_s):
        request = b"set %b 0 %d %d\r\n%b\r\n" % (key, exptime_s, len(value), value)
        return await self._call(request, self._read_stored)

    async def _call(self, request, read):
        connection = self._idle.pop() if self._idle else await self._connect()
        reader, writer = connection
        try:
            writer.write(request)
            answer = await asyncio.wait_for(read(reader), self._setup.timeout_s)
        except asyncio.CancelledError:
            if KEEPS:
                self._idle.append(connection)
            else:
                writer.close()
            raise
        except BaseException:
            writer.close()
            raise
        self._idle.append(connection)
        return answer

    async def _read_value(self, reader):
        line = await reader.readline()
        if line == b"END\r\n":
            return None
        if not line.startswith(b"VALUE "):
            raise ReplyError(line)
        value = await reader.readexactly(int(line.split()[3]))
        await reader.readline()
        await reader.readline()
        return value

    async def _read_stored(self, reader):
        line = await reader.readline()
        if line != b"STORED\r\n":
            raise ReplyError(line)
        return True

    def failure(self, error, _op):
        if isinstance(error, asyncio.TimeoutError):
            error = TimeoutError()
        return network_fault(error) or PROTOCOL

    async def close(self):
        for _, writer in self._idle:
            writer.close()
