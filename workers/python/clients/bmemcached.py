"""bmemcached (python-binary-memcached): the binary protocol; one client for each thread.

It reports no failures, and no misses of `delete`: this file looks at the status of each reply. It
cannot set TCP_NODELAY, and has no time-out on a Unix socket. By default it compresses values of
more than 128 bytes; `raw_data` sends them as they are, with flags 0.
"""

from __future__ import annotations

import inspect

import bmemcached
from bmemcached.exceptions import (
    AuthenticationNotSupported,
    InvalidCredentials,
    MemcachedException,
)
from bmemcached.protocol import Protocol

from client import BaseSession
from verify import (
    CLIENT,
    PROTOCOL,
    SERVER,
    counted,
    found,
    found_many,
    network_fault,
    plain,
    swapped,
)

LIBRARY = "python-binary-memcached"
API = "sync"
KEYS = str
WIRES = ("binary",)
FEATURES = ("threads", "open_loop", "cluster", "tls", "login_sasl")
OPTIONS = {"hashing": ("default",)}
UNREACHABLE = (OSError, AuthenticationNotSupported, InvalidCredentials)
# With this expiry time, the server does not create a missing counter.
_MAKE_NONE = 0xFFFFFFFF

CALLS = {
    "get": lambda s, op: (s.client.get, (op.key,), s.found),
    "gets": lambda s, op: (s.client.gets, (op.key,), s.found_with_cas),
    "mget": lambda s, op: (s.client.get_multi, (op.keys,), s.found_many),
    "set": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s), s.stored),
    "add": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s), s.accepted),
    "replace": lambda s, op: (s.client.replace, (op.key, op.value, op.exptime_s), s.accepted),
    "delete": lambda s, op: (s.client.delete, (op.key,), s.known),
    "mset": lambda s, op: (s.client.set_multi, (op.pairs, op.exptime_s), s.stored_many),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), s.swapped),
    "incr": lambda s, op: (s.client.incr, (op.key, op.amount, 0, _MAKE_NONE), s.counted),
    "decr": lambda s, op: (s.client.decr, (op.key, op.amount, 0, _MAKE_NONE), s.counted),
}

_GONE, _EXISTS = 0x01, 0x02
# Statuses that are SERVER_ERROR in the text protocol: too large, no memory, not now.
_REFUSED = {0x03, 0x82, 0x83, 0x84, 0x85, 0x86}
_WRONG_REQUEST = {0x04, 0x06, 0x81}
NOTHING = {}
_HAS_RAW_DATA = "raw_data" in inspect.signature(Protocol).parameters


class Session(BaseSession):
    """The client of one thread, and the status of its last reply."""

    def __init__(self, setup):
        options = {"socket_timeout": setup.timeout_s} if setup.common else {}
        if setup.common and _HAS_RAW_DATA:
            options["raw_data"] = True
        if "tls" in setup.options:  # older versions know no such argument
            options["tls_context"] = setup.tls_context()
        options["username"], options["password"] = setup.login()
        one = len(setup.servers) == 1
        make = bmemcached.Client if one else bmemcached.DistributedClient
        self.client = make([server.text for server in setup.servers], **options)
        self._status, self._lost = 0, None
        for server in self.client.servers:
            self._watch(server)
            if setup.common:
                server.set_retry_delay(0)  # connect again at the next call
                server.deserialize = plain
                if not _HAS_RAW_DATA:  # before 0.33: the same by hand
                    server.serialize = lambda value, compress_level=-1: (0, value)
            if not server.stats():
                raise self._lost or ConnectionError("no answer")

    def _watch(self, server):
        """Remember the status of each reply, and why the library gave up a connection.

        This is the only addition to the library's own path; it costs some 0.1 µs for each reply.
        """
        receive, give_up = server._get_response, server._connection_error

        def response():
            received = receive()
            self._status = received[5]
            return received

        def note(error):
            self._lost = self._lost or error
            give_up(error)

        server._get_response, server._connection_error = response, note

    def _sure(self, code, answers=NOTHING):
        """The result of a call: a code, or else the meaning of its reply's status."""
        lost, self._lost = self._lost, None
        if code is not None:
            return code
        if lost is not None:
            return network_fault(lost)
        return answers.get(self._status, PROTOCOL)

    def found(self, value, op):
        return self._sure(None if value is None else found(value, op), {_GONE: 0})

    def found_with_cas(self, answer, op):
        return self.found(answer[0], op)

    def found_many(self, values, op):
        return self._sure(None if self._lost else found_many(values, op))

    def stored(self, result, op):
        return self._sure(op.ok_code if result else None)

    def stored_many(self, failed, op):
        if failed and not self._lost:
            return SERVER
        return self._sure(None if self._lost else op.ok_code)

    def accepted(self, result, op):
        refused = dict.fromkeys((_GONE, _EXISTS), op.ok_code | 1)
        return self._sure(op.ok_code if result else None, refused)

    def known(self, result, op):
        return self._sure(None if self._lost else op.ok_code * (self._status != _GONE))

    def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        read, token = self.client.gets(key)
        return read, read is not None and self.client.cas(key, value, token, exptime_s)

    def swapped(self, answer, op):
        read, result = answer
        if read is None:
            return self._sure(None, {_GONE: 0})
        code = swapped(answer, op)
        return self._sure(code if result else None, {_EXISTS: code, _GONE: code})

    def counted(self, number, op):
        return self._sure(None if self._lost else counted(number, op))

    def failure(self, error, op):
        self._lost = None
        if not isinstance(error, MemcachedException):
            return (
                CLIENT
                if isinstance(error, (TypeError, ValueError))
                else network_fault(error) or PROTOCOL
            )
        if error.code == _GONE:
            return 0  # for a counter: this exception is an answer
        if error.code in _REFUSED:
            return SERVER
        return CLIENT if error.code in _WRONG_REQUEST else PROTOCOL

    def close(self):
        self.client.disconnect_all()
