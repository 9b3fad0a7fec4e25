"""aiomcache: one `Client` with a pool for all tasks. It has no time-out and no noreply.

To end a call that lasts too long, this file closes the pool's connections: a task that is only
cancelled would return a connection to the pool whose reply is still outstanding.
"""

from __future__ import annotations

import asyncio
import functools

import aiomcache

from client import BaseSession
from verify import (
    CLIENT,
    accepted,
    counted,
    found,
    found_many,
    known,
    network_fault,
    reply_fault,
    sent,
    stored,
    swapped,
)

LIBRARY = "aiomcache"
API = "async"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("open_loop", "pipeline", "tls")  # asyncio sets TCP_NODELAY itself
OPTIONS = {}
UNREACHABLE = (OSError, asyncio.TimeoutError)

CALLS = {
    "get": lambda s, op: (s.client.get, (op.key,), found),
    "gets": lambda s, op: (s.client.gets, (op.key,), found_with_cas),
    "mget": lambda s, op: (s.client.multi_get, tuple(op.keys), found_in_order),
    "set": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s), stored),
    "add": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s), accepted),
    "replace": lambda s, op: (s.client.replace, (op.key, op.value, op.exptime_s), accepted),
    "delete": lambda s, op: (s.client.delete, (op.key,), known),
    "touch": lambda s, op: (s.client.touch, (op.key, op.exptime_s), known),
    "version": lambda s, op: (s.client.version, (), sent),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), swapped),
    "incr": lambda s, op: (s.client.incr, (op.key, op.amount), counted),
    "decr": lambda s, op: (s.client.decr, (op.key, op.amount), counted),
}


class Session(BaseSession):
    """The client of all tasks."""

    def __init__(self, setup):
        self._setup = setup
        size, server = setup.connections, setup.server
        tls = setup.tls_context()
        self.client = aiomcache.Client(
            server.host,
            server.port,
            pool_size=size,
            pool_minsize=size,
            **({"conn_args": {"ssl": tls}} if tls else {}),  # older versions know no such argument
        )
        self._pool = self.client._pool
        self._connect = self._pool._create_new_conn
        self._pool._create_new_conn = self._connected

    async def _connected(self):
        """Make the end of a connection raise: the library would read on for ever, without waits."""
        connection = await self._connect()
        if connection is not None:
            lost = ConnectionResetError("the server closed the connection")
            connection.reader.feed_eof = functools.partial(connection.reader.set_exception, lost)
        return connection

    async def open(self):
        # The pool fills itself to its least size at the first call.
        await asyncio.wait_for(self.client.version(), self._setup.timeout_s)

    async def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        read, token = await self.client.gets(key)
        return read, read is not None and await self.client.cas(key, value, token, exptime_s)

    def failure(self, error, op):
        if isinstance(error, aiomcache.ValidationException):
            return CLIENT
        if "NOT_FOUND" in str(error):
            return 0  # for a counter: this exception is an answer
        return network_fault(error) or reply_fault(str(error))

    def expire(self):
        if not self._setup.common:
            return True
        for connection in self._pool._in_use:
            connection.reader.set_exception(TimeoutError())
        return bool(self._pool._in_use)

    async def barrier(self):
        return 0  # no operation lacks a reply

    async def close(self):
        await self.client.close()


def found_with_cas(answer, op):
    """A `gets`: the value and its token."""
    return found(answer[0], op)


def found_in_order(values, op):
    """A read of many keys: a tuple with None for each that was not found."""
    return found_many({key: value for key, value in zip(op.keys, values) if value is not None}, op)
