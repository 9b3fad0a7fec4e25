"""pymemcache: one `Client` for each thread, as a `Client` must not be shared.

For several servers, each thread has a `HashClient`. By default it returns None for a call to a
server that has just failed, as for a miss: this file refuses that profile. It leaves out
`PooledClient`: a caller that finds all connections in use gets an exception and does not wait.
"""

from __future__ import annotations

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import (
    MemcacheClientError,
    MemcacheServerError,
    MemcacheUnexpectedCloseError,
)

from client import BaseSession
from prepare import ON_OFF
from verify import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    SERVER,
    accepted,
    counted,
    found,
    found_many,
    known,
    network_fault,
    plain,
    sent,
    stored,
    stored_many,
    swapped,
)

LIBRARY = "pymemcache"
API = "sync"
KEYS = str
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "in_order", "unix", "cluster", "tls", "trailing_space")
OPTIONS = {"nodelay": ON_OFF, "hashing": ("default",), "trailing_space": ("yes",)}
UNREACHABLE = OSError
# Its documents (Best Practices) recommend these settings, without a value for the time-outs.
TUNED = {"connect_timeout": 0.5, "timeout": 0.5, "no_delay": True, "ignore_exc": True}

# The last argument of a write is `noreply`, on by default.
CALLS = {
    "get": lambda s, op: (s.client.get, (op.key,), found),
    "gets": lambda s, op: (s.client.gets, (op.key,), found_with_cas),
    "mget": lambda s, op: (s.client.get_many, (op.keys,), found_many),
    "set": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s, False), stored),
    "add": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s, False), accepted),
    "replace": lambda s, op: (s.client.replace, (op.key, op.value, op.exptime_s, False), accepted),
    "delete": lambda s, op: (s.client.delete, (op.key, False), known),
    "touch": lambda s, op: (s.client.touch, (op.key, op.exptime_s, False), known),
    "version": lambda s, op: (s.client.version, (), sent),
    "mset": lambda s, op: (s.client.set_many, (op.pairs, op.exptime_s, False), stored_many),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), swapped),
    "incr": lambda s, op: (s.client.incr, (op.key, op.amount, False), counted),
    "decr": lambda s, op: (s.client.decr, (op.key, op.amount, False), counted),
    "set_noreply": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s, True), sent),
    "add_noreply": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s, True), sent),
    "replace_noreply": lambda s, op: (
        s.client.replace, (op.key, op.value, op.exptime_s, True), sent),
    "delete_noreply": lambda s, op: (s.client.delete, (op.key, True), sent),
    "touch_noreply": lambda s, op: (s.client.touch, (op.key, op.exptime_s, True), sent),
    "mset_noreply": lambda s, op: (s.client.set_many, (op.pairs, op.exptime_s, True), sent),
    "incr_noreply": lambda s, op: (s.client.incr, (op.key, op.amount, True), sent),
    "decr_noreply": lambda s, op: (s.client.decr, (op.key, op.amount, True), sent),
}  # fmt: skip


def refuse(setup):
    """Why it cannot be done, or the empty string."""
    if "trailing_space" in setup.options:
        unspaced = setup.kinds & {"delete", "touch", "incr", "decr", "cas"}
        return f"no {', '.join(sorted(unspaced))} with trailing_space" if unspaced else ""
    if len(setup.servers) == 1:
        return ""
    if not setup.common:
        return "HashClient with its defaults answers a failure like a miss"
    return "no version of several servers" if "version" in setup.kinds else ""


class SpacedClient(Client):
    """Writes a space before the end of each `set` line, as some servers want it."""

    def _store_cmd(self, name, values, expire, noreply, **options):
        # The library puts a space before a cas number, also before an empty one.
        if not noreply and options.get("cas") is None:
            options["cas"] = b""
        return super()._store_cmd(name, values, expire, noreply, **options)


class Session(BaseSession):
    """The client of one thread."""

    def __init__(self, setup):
        options = {"default_noreply": False}
        if setup.common:
            # The library's time-out holds for each read of the socket, not for the whole call.
            options.update(connect_timeout=setup.timeout_s, timeout=setup.timeout_s)
            options["deserializer"] = lambda _key, value, flags: plain(value, flags)
        by_path = any(server.path for server in setup.servers)
        options["no_delay"] = setup.on("nodelay", setup.common) and not by_path
        if setup.tuned:
            options.update(TUNED)
        if "tls" in setup.options:  # older versions know no such argument
            options["tls_context"] = setup.tls_context()
        addresses = [server.path or (server.host, server.port) for server in setup.servers]
        if len(addresses) == 1:
            made = SpacedClient if "trailing_space" in setup.options else Client
            self.client = made(addresses[0], **options)
            self._members = [self.client]
        else:
            # Try a failed server again at the next call; it keeps its keys.
            self.client = HashClient(addresses, retry_attempts=1 << 60, retry_timeout=-1, **options)
            self._members = list(self.client.clients.values())
        self.barrier()

    def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        read, token = self.client.gets(key)
        return read, token is not None and self.client.cas(key, value, token, exptime_s, False)

    def failure(self, error, op):
        if isinstance(error, MemcacheUnexpectedCloseError):  # the library makes it a server's error
            return CONNECTION
        if isinstance(error, MemcacheServerError):
            return SERVER
        if isinstance(error, MemcacheClientError):
            return CLIENT
        return network_fault(error) or PROTOCOL

    def barrier(self):
        for member in self._members:
            member.version()
        return len(self._members)

    def close(self):
        self.client.close()


def found_with_cas(answer, op):
    """A `gets`: the value and its token."""
    return found(answer[0], op)
