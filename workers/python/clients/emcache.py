"""emcache: one client with a pool for all tasks. It sets TCP_NODELAY and has its own time-out.

A pool that lost its connections makes new ones in the background, a second or more later; calls
wait for them until their time-out.
"""

from __future__ import annotations

import asyncio
from functools import partial

import emcache

from client import BaseSession
from prepare import ON_OFF
from verify import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    TIMEOUT,
    counted,
    found,
    found_many,
    network_fault,
    plain,
    reply_fault,
    sent,
    swapped,
)

LIBRARY = "emcache"
API = "async"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("open_loop", "pipeline", "unix", "cluster", "tls", "login_text")
# Autobatching, which sends gets of one moment as one get, is off by default, as in the library.
OPTIONS = {"autobatching": ON_OFF, "hashing": ("default",)}
UNREACHABLE = (OSError, asyncio.TimeoutError, emcache.CommandError)
_LOOK_S = 0.005

# True: with the flags.
CALLS = {
    "get": lambda s, op: (s.client.get, (op.key, True), found_item),
    "gets": lambda s, op: (s.client.gets, (op.key, True), found_item),
    "gat": lambda s, op: (s.client.gat, (op.exptime_s, op.key, True), found_item),
    "mget": lambda s, op: (s.client.get_many, (op.keys, True), found_items),
    "set": lambda s, op: write(s.client.set, op),
    "add": lambda s, op: write(s.client.add, op),
    "replace": lambda s, op: write(s.client.replace, op),
    "delete": lambda s, op: (s.client.delete, (op.key,), sent),
    "touch": lambda s, op: (s.client.touch, (op.key, op.exptime_s), sent),
    "version": lambda s, op: (s.client.version, (s.addresses[0],), sent),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), swapped),
    "incr": lambda s, op: (s.client.increment, (op.key, op.amount), counted),
    "decr": lambda s, op: (s.client.decrement, (op.key, op.amount), counted),
    "set_noreply": lambda s, op: write(s.client.set, op, noreply=True),
    "add_noreply": lambda s, op: write(s.client.add, op, noreply=True),
    "replace_noreply": lambda s, op: write(s.client.replace, op, noreply=True),
    "delete_noreply": lambda s, op: (quiet(s.client.delete), (op.key,), sent),
    "touch_noreply": lambda s, op: (quiet(s.client.touch), (op.key, op.exptime_s), sent),
    "incr_noreply": lambda s, op: (quiet(s.client.increment), (op.key, op.amount), sent),
    "decr_noreply": lambda s, op: (quiet(s.client.decrement), (op.key, op.amount), sent),
}


def refuse(setup):
    """Why it cannot be done, or the empty string."""
    more = sorted({"tls_name", "tls_client_cert"} & set(setup.options))
    return f"the library's TLS has no {' and no '.join(more)}" if more else ""


class Session(BaseSession):
    """The client of all tasks."""

    def __init__(self, setup):
        self._setup = setup
        self.client = None
        self.addresses = [
            emcache.MemcachedUnixSocketPath(server.path)
            if server.path
            else emcache.MemcachedHostAddress(server.host, server.port)
            for server in setup.servers
        ]

    async def open(self):
        setup, options = self._setup, {}
        if setup.common:
            options = {
                "timeout": setup.timeout_s,
                "connection_timeout": setup.timeout_s,
                "purge_unused_connections_after": None,
            }
        if file := setup.options.get("tls"):
            options |= {"ssl": True, "ssl_extra_ca": file}
        options["username"], options["password"] = setup.login()
        self.client = await emcache.create_client(
            self.addresses,
            max_connections=setup.connections,
            min_connections=setup.connections,
            autobatching=setup.on("autobatching", False),
            **options,
        )
        for address in self.addresses:
            await self.client.version(address)
        await asyncio.wait_for(self._filled(), setup.timeout_s * (1 + setup.connections))

    async def _filled(self):
        """The pools open their connections one by one in the background."""
        pools = self.client.cluster_managment()
        while any(
            pool.cur_connections < self._setup.connections
            for pool in pools.connection_pool_metrics().values()
        ):
            await asyncio.sleep(_LOOK_S)

    async def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        item = await self.client.gets(key, return_flags=True)
        if item is None:
            return None, None
        try:
            await self.client.cas(key, value, item.cas, exptime=exptime_s)
        except emcache.NotStoredStorageCommandError:
            return plain(item.value, item.flags), False
        except emcache.StorageCommandError as error:
            if "NOT_FOUND" not in str(error):
                raise
            return plain(item.value, item.flags), False
        return plain(item.value, item.flags), True

    def failure(self, error, op):
        if isinstance(error, emcache.NotFoundCommandError):
            return 0  # this exception is an answer
        if isinstance(error, emcache.NotStoredStorageCommandError):
            return op.ok_code | 1
        if isinstance(error, emcache.ClusterNoAvailableNodes):
            return CONNECTION
        if isinstance(error, emcache.CommandError):
            return reply_fault(str(error))
        if isinstance(error, asyncio.TimeoutError):
            return TIMEOUT
        return (
            CLIENT
            if isinstance(error, (ValueError, TypeError))
            else network_fault(error) or PROTOCOL
        )

    def expire(self):
        return True  # by the library's own time-out

    async def barrier(self):
        # As many calls at once as there are connections: each gets one of its own.
        count = self._setup.connections
        calls = [self.client.version(address) for address in self.addresses for _ in range(count)]
        return len(await asyncio.gather(*calls))

    async def close(self):
        await self.client.close()


def write(function, op, noreply=False):
    """A write, which raises if the value was not stored."""
    return partial(function, exptime=op.exptime_s, noreply=noreply), (op.key, op.value), sent


def quiet(function):
    """The same command without a reply."""
    return partial(function, noreply=True)


def found_item(item, op):
    """A read of one key: an item, or None."""
    return found(None if item is None else plain(item.value, item.flags), op)


def found_items(items, op):
    """A read of many keys: the items that were found."""
    return found_many({key: plain(item.value, item.flags) for key, item in items.items()}, op)
