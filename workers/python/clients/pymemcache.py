"""pymemcache: one `Client` for each thread, as a `Client` must not be shared."""

from __future__ import annotations

from pymemcache.client.base import Client
from pymemcache.exceptions import (
    MemcacheClientError,
    MemcacheServerError,
    MemcacheUnexpectedCloseError,
)

from clients import Base
from judge import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    SERVER,
    accepted,
    found,
    found_many,
    known,
    network,
    sent,
    stored,
    stored_many,
)

LIBRARY = "pymemcache"
API = "sync"
KEYS = str
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "unix")
OPTIONS = ("nodelay",)  # the library's default is off; ours is on
UNREACHABLE = OSError


class Session(Base):
    """The client of one thread."""

    def __init__(self, setup):
        # The time-out is the library's: it counts for each read of the socket, not for the whole.
        self._client = client = Client(
            setup.path or (setup.host, setup.port),
            connect_timeout=setup.timeout_s,
            timeout=setup.timeout_s,
            no_delay=setup.on("nodelay", "on") and not setup.path,
            default_noreply=False,
        )
        self._get, self._get_many = client.get, client.get_many
        self._set, self._set_many = client.set, client.set_many
        client.version()

    def get(self, op):
        return self._get, (op.key,), found

    def gets(self, op):
        return self._client.gets, (op.key,), found_with_cas

    def mget(self, op):
        return self._get_many, (op.keys,), found_many

    def set(self, op):
        return self._set, (op.key, op.value, op.exptime_s, False), stored

    def set_noreply(self, op):
        return self._set, (op.key, op.value, op.exptime_s, True), sent

    def mset(self, op):
        return self._set_many, (op.pairs, op.exptime_s, False), stored_many

    def mset_noreply(self, op):
        return self._set_many, (op.pairs, op.exptime_s, True), sent

    def add(self, op):
        return self._client.add, (op.key, op.value, op.exptime_s, False), accepted

    def add_noreply(self, op):
        return self._client.add, (op.key, op.value, op.exptime_s, True), sent

    def replace(self, op):
        return self._client.replace, (op.key, op.value, op.exptime_s, False), accepted

    def replace_noreply(self, op):
        return self._client.replace, (op.key, op.value, op.exptime_s, True), sent

    def delete(self, op):
        return self._client.delete, (op.key, False), known

    def delete_noreply(self, op):
        return self._client.delete, (op.key, True), sent

    def touch(self, op):
        return self._client.touch, (op.key, op.exptime_s, False), known

    def touch_noreply(self, op):
        return self._client.touch, (op.key, op.exptime_s, True), sent

    def version(self, _op):
        return self._client.version, (), sent

    def failure(self, error, _op):
        if isinstance(error, MemcacheUnexpectedCloseError):  # to the library a server's error
            return CONNECTION
        if isinstance(error, MemcacheServerError):
            return SERVER
        if isinstance(error, MemcacheClientError):
            return CLIENT
        return network(error) or PROTOCOL

    def barrier(self):
        self._client.version()
        return 1

    def close(self):
        self._client.close()


def found_with_cas(answer, op):
    return found(answer[0], op)
