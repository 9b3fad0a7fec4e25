"""aiomcache: one `Client` with a pool for all tasks. It has no time-out and no noreply.

A call that lasts too long is ended by closing the pool's connections, since a task that is merely
cancelled would give a connection back with its reply still to come.
"""

from __future__ import annotations

import asyncio
import functools

import aiomcache

from clients import Base
from judge import (
    CLIENT,
    accepted,
    found,
    found_many,
    known,
    network,
    reply,
    sent,
    stored,
)

LIBRARY = "aiomcache"
API = "async"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("open_loop",)  # asyncio sets TCP_NODELAY itself
OPTIONS = ()
UNREACHABLE = (OSError, asyncio.TimeoutError)


class Session(Base):
    """The client of all tasks."""

    def __init__(self, setup):
        self._setup = setup
        self._client = aiomcache.Client(
            setup.host, setup.port, pool_size=setup.connections, pool_minsize=setup.connections
        )
        self._pool = self._client._pool
        self._connect = self._pool._create_new_conn
        self._pool._create_new_conn = self._connected

    async def _connected(self):
        """Have the end of a connection raise: the library would read on for ever, never waiting."""
        connection = await self._connect()
        if connection is not None:
            lost = ConnectionResetError("the server closed the connection")
            connection.reader.feed_eof = functools.partial(connection.reader.set_exception, lost)
        return connection

    async def open(self):
        # The pool fills itself to its least size at the first call.
        await asyncio.wait_for(self._client.version(), self._setup.timeout_s)

    def get(self, op):
        return self._client.get, (op.key,), found

    def gets(self, op):
        return self._client.gets, (op.key,), found_with_cas

    def mget(self, op):
        return self._client.multi_get, tuple(op.keys), found_in_order

    def set(self, op):
        return self._client.set, (op.key, op.value, op.exptime_s), stored

    def add(self, op):
        return self._client.add, (op.key, op.value, op.exptime_s), accepted

    def replace(self, op):
        return self._client.replace, (op.key, op.value, op.exptime_s), accepted

    def delete(self, op):
        return self._client.delete, (op.key,), known

    def touch(self, op):
        return self._client.touch, (op.key, op.exptime_s), known

    def version(self, _op):
        return self._client.version, (), sent

    def failure(self, error, _op):
        if isinstance(error, aiomcache.ValidationException):
            return CLIENT
        return network(error) or reply(str(error))

    def expire(self):
        for connection in self._pool._in_use:
            connection.reader.set_exception(TimeoutError())
        return bool(self._pool._in_use)

    async def barrier(self):
        return 0  # there is nothing without a reply

    async def close(self):
        await self._client.close()


def found_with_cas(answer, op):
    return found(answer[0], op)


def found_in_order(values, op):
    """A read of many keys: a tuple with None for each that was not found."""
    return found_many({key: value for key, value in zip(op.keys, values) if value is not None}, op)
