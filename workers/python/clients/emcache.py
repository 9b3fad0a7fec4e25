"""emcache: one client with a pool for all tasks. It sets TCP_NODELAY and has its own time-out.

A pool that lost its connections makes new ones in the background, a second or more later; calls
wait for them until their time-out.
"""

from __future__ import annotations

import asyncio
from functools import partial

import emcache

from clients import Base
from judge import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    TIMEOUT,
    found,
    found_many,
    network,
    reply,
    sent,
)

LIBRARY = "emcache"
API = "async"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("open_loop", "unix")
OPTIONS = ("autobatching",)  # off, as the library has it: gets of one moment go out as one
UNREACHABLE = (OSError, asyncio.TimeoutError, emcache.CommandError)
_LOOK_S = 0.005


class Session(Base):
    """The client of all tasks."""

    def __init__(self, setup):
        self._setup = setup
        self._client = None
        if setup.path:
            self._address = emcache.MemcachedUnixSocketPath(setup.path)
        else:
            self._address = emcache.MemcachedHostAddress(setup.host, setup.port)

    async def open(self):
        setup = self._setup
        self._client = await emcache.create_client(
            [self._address],
            timeout=setup.timeout_s,
            max_connections=setup.connections,
            min_connections=setup.connections,
            connection_timeout=setup.timeout_s,
            purge_unused_connections_after=None,
            autobatching=setup.on("autobatching", "off"),
        )
        await self._client.version(self._address)
        await asyncio.wait_for(self._filled(), setup.timeout_s * (1 + setup.connections))

    async def _filled(self):
        """The pool opens its connections one by one in the background."""
        pools = self._client.cluster_managment()
        while pools.connection_pool_metrics()[self._address].cur_connections < (
            self._setup.connections
        ):
            await asyncio.sleep(_LOOK_S)

    def get(self, op):
        return self._client.get, (op.key,), found_item

    def gets(self, op):
        return self._client.gets, (op.key,), found_item

    def gat(self, op):
        return self._client.gat, (op.exptime_s, op.key), found_item

    def mget(self, op):
        return self._client.get_many, (op.keys,), found_items

    def set(self, op):
        return write(self._client.set, op)

    def set_noreply(self, op):
        return write(self._client.set, op, noreply=True)

    def add(self, op):
        return write(self._client.add, op)

    def add_noreply(self, op):
        return write(self._client.add, op, noreply=True)

    def replace(self, op):
        return write(self._client.replace, op)

    def replace_noreply(self, op):
        return write(self._client.replace, op, noreply=True)

    def delete(self, op):
        return self._client.delete, (op.key,), sent

    def delete_noreply(self, op):
        return partial(self._client.delete, noreply=True), (op.key,), sent

    def touch(self, op):
        return self._client.touch, (op.key, op.exptime_s), sent

    def touch_noreply(self, op):
        return partial(self._client.touch, noreply=True), (op.key, op.exptime_s), sent

    def version(self, _op):
        return self._client.version, (self._address,), sent

    def failure(self, error, op):
        if isinstance(error, emcache.NotFoundCommandError):
            return 0  # an answer, by way of an exception
        if isinstance(error, emcache.NotStoredStorageCommandError):
            return op.done | 1
        if isinstance(error, emcache.ClusterNoAvailableNodes):
            return CONNECTION
        if isinstance(error, emcache.CommandError):
            return reply(str(error))
        if isinstance(error, asyncio.TimeoutError):
            return TIMEOUT
        return CLIENT if isinstance(error, (ValueError, TypeError)) else network(error) or PROTOCOL

    def expire(self):
        return True  # by the library's own time-out

    async def barrier(self):
        # As many calls at once as there are connections: each gets one of its own.
        calls = [self._client.version(self._address) for _ in range(self._setup.connections)]
        return len(await asyncio.gather(*calls))

    async def close(self):
        await self._client.close()


def write(function, op, noreply=False):
    """A write; that something was not stored is an exception."""
    return partial(function, exptime=op.exptime_s, noreply=noreply), (op.key, op.value), sent


def found_item(item, op):
    return found(None if item is None else item.value, op)


def found_items(items, op):
    return found_many({key: item.value for key, item in items.items()}, op)
