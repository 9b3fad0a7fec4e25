"""meta-memcache: the meta protocol; one `CacheClient` with a pool of one connection per thread.

A value longer than its read buffer (by default 4096 bytes) stalls it for 0.2 s for every 8 KiB, so
`common` sets one of 64 KiB. It has no command with a sure reply and without a key: `barrier`
changes a counter that no tape has. It can step only counters that were stored as text.
"""

from __future__ import annotations

import logging

from meta_memcache import CacheClient
from meta_memcache.base.base_serializer import BaseSerializer, EncodedValue
from meta_memcache.configuration import (
    ServerAddress,
    build_server_pool,
    connection_pool_factory_builder,
)
from meta_memcache.connection.providers import HashRingConnectionPoolProvider
from meta_memcache.errors import MemcacheServerError
from meta_memcache.executors.default import DefaultExecutor
from meta_memcache.protocol import SetMode
from meta_memcache.routers.default import DefaultRouter
from meta_memcache.serializer import MixedSerializer

from client import BaseSession
from tape import COUNTER
from verify import (
    CLIENT,
    PROTOCOL,
    accepted,
    counted,
    found,
    found_many,
    known,
    network_fault,
    plain,
    sent,
    stored,
    swapped,
)

LIBRARY = "meta-memcache"
API = "sync"
KEYS = str
WIRES = ("meta",)
FEATURES = ("threads", "open_loop", "cluster")
OPTIONS = {"hashing": ("default",)}
UNREACHABLE = MemcacheServerError
_READ_BUFFER_BYTES = 1 << 16
_NOBODY = b"cachemark:nobody"
_ADD, _REPLACE = (None, None, SetMode.ADD), (None, None, SetMode.REPLACE)

# After a write's expiry time comes its argument `no_reply`.
CALLS = {
    "get": lambda s, op: (s.client.get, (op.key,), found),
    "gets": lambda s, op: (s.client.get_cas, (op.key,), found_with_cas),
    "mget": lambda s, op: (s.client.multi_get, (op.keys,), found_by_key),
    "set": lambda s, op: (s.client.set, (op.key, s.natural(op.value), op.exptime_s), stored),
    "add": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s, False, *_ADD), accepted),
    "replace": lambda s, op: (
        s.client.set, (op.key, op.value, op.exptime_s, False, *_REPLACE), accepted),
    "delete": lambda s, op: (s.client.delete, (op.key,), known),
    "touch": lambda s, op: (s.client.touch, (op.key, op.exptime_s), known),
    "gat": lambda s, op: (s.client.get, (op.key, op.exptime_s), found),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), swapped),
    "incr": lambda s, op: (s.counters.delta_and_get, (op.key, op.amount), counted),
    "decr": lambda s, op: (s.counters.delta_and_get, (op.key, -op.amount), counted),
    "set_noreply": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s, True), sent),
    "add_noreply": lambda s, op: (
        s.client.set, (op.key, op.value, op.exptime_s, True, *_ADD), sent),
    "replace_noreply": lambda s, op: (
        s.client.set, (op.key, op.value, op.exptime_s, True, *_REPLACE), sent),
    "delete_noreply": lambda s, op: (s.client.delete, (op.key, None, True), sent),
    "incr_noreply": lambda s, op: (s.counters.delta, (op.key, op.amount, None, True), sent),
    "decr_noreply": lambda s, op: (s.counters.delta, (op.key, -op.amount, None, True), sent),
}  # fmt: skip


class Raw(BaseSerializer):
    """Values as they are, with flags 0."""

    def serialize(self, key, value):
        return EncodedValue(data=value, encoding_id=0)

    def unserialize(self, data, encoding_id):
        return plain(data, encoding_id)


class Session(BaseSession):
    """The client of one thread."""

    def __init__(self, setup):
        logging.getLogger("meta_memcache").addHandler(logging.NullHandler())
        options = {}
        if setup.common:
            options = {
                "max_pool_size": 1,
                "mark_down_period_s": 0,  # connect again at the next call
                "connection_timeout": setup.timeout_s,
                "recv_timeout": setup.timeout_s,
                "read_buffer_size": _READ_BUFFER_BYTES,
            }
        addresses = [ServerAddress(server.host, server.port) for server in setup.servers]
        self._pools = build_server_pool(addresses, connection_pool_factory_builder(**options))
        self._common = setup.common
        self.client = self._client(Raw() if setup.common else MixedSerializer())
        self.counters = self._client(MixedSerializer())  # it takes them for text
        self.barrier()

    def _client(self, serializer):
        pools = HashRingConnectionPoolProvider(self._pools)
        return CacheClient(router=DefaultRouter(pools, DefaultExecutor(serializer)))

    def natural(self, value):
        """A value in the form that a user of the library stores."""
        return value.decode() if value is COUNTER and not self._common else value

    def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        read, token = self.client.get_cas(key)
        return read, read is not None and self.client.set(key, value, exptime_s, False, token)

    def failure(self, error, op):
        if not isinstance(error, MemcacheServerError):
            return CLIENT if isinstance(error, (TypeError, ValueError)) else PROTOCOL
        cause = error.__cause__ or ConnectionError()
        # It does not report the text of an unknown reply, such as SERVER_ERROR.
        return PROTOCOL if "Unknown response" in str(cause) else network_fault(cause) or PROTOCOL

    def barrier(self):
        for pool in self._pools.values():
            with pool.get_connection() as connection:
                connection.meta_arithmetic(_NOBODY)
        return len(self._pools)

    def close(self):
        for pool in self._pools.values():
            for _ in range(pool.get_counters().available):
                pool.pop_connection().close()


def found_with_cas(answer, op):
    """A read of one key: the value and its token."""
    return found(answer[0], op)


def found_by_key(values, op):
    """A read of many keys: the library's own keys, with None for each that was not found."""
    pairs = {key.key: value for key, value in values.items() if value is not None}
    return found_many(pairs, op)
