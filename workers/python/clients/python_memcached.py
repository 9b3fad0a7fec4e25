"""python-memcached: one `Client` for each thread. Only this file distinguishes failures and misses.

It cannot set TCP_NODELAY. After a failure it considers a server dead for 30 s, during which its
calls return nothing at once, or go to another server; `dead_retry=0` makes it connect again at the
next call. It repeats a call if the server had closed the connection; this cannot be switched off.
"""

from __future__ import annotations

import memcache

from client import BaseSession
from verify import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    SERVER,
    TIMEOUT,
    counted,
    found,
    found_many,
    network_fault,
    reply_fault,
    swapped,
)

LIBRARY = "python-memcached"
API = "sync"
KEYS = str
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "in_order", "unix", "cluster", "trailing_space")
OPTIONS = {"hashing": ("default",), "trailing_space": ("yes",)}
UNREACHABLE = OSError
_QUIET = (0, True)  # no compression, no reply

CALLS = {
    "get": lambda s, op: (s.client.get, (op.key,), s.found),
    "gets": lambda s, op: (s.client.gets, (op.key,), s.found),
    "mget": lambda s, op: (s.client.get_multi, (op.keys,), s.found_many),
    "set": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s), s.stored),
    "add": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s), s.accepted),
    "replace": lambda s, op: (s.client.replace, (op.key, op.value, op.exptime_s), s.accepted),
    "delete": lambda s, op: (s.client.delete, (op.key,), s.known),
    "touch": lambda s, op: (s.client.touch, (op.key, op.exptime_s), s.known),
    "mset": lambda s, op: (s.client.set_multi, (op.pairs, op.exptime_s), s.stored_many),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), s.swapped),
    "incr": lambda s, op: (s.client.incr, (op.key, op.amount), s.counted),
    "decr": lambda s, op: (s.client.decr, (op.key, op.amount), s.counted),
    "set_noreply": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s, *_QUIET), s.sent),
    "add_noreply": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s, *_QUIET), s.sent),
    "replace_noreply": lambda s, op: (
        s.client.replace, (op.key, op.value, op.exptime_s, *_QUIET), s.sent),
    "delete_noreply": lambda s, op: (s.client.delete, (op.key, True), s.sent),
    "touch_noreply": lambda s, op: (s.client.touch, (op.key, op.exptime_s, True), s.sent),
    "mset_noreply": lambda s, op: (
        s.client.set_multi, (op.pairs, op.exptime_s, "", *_QUIET), s.sent_many),
    "incr_noreply": lambda s, op: (s.client.incr, (op.key, op.amount, True), s.sent_many),
    "decr_noreply": lambda s, op: (s.client.decr, (op.key, op.amount, True), s.sent_many),
}  # fmt: skip


class SpacedClient(memcache.Client):
    """Ends a command with a space, except with `noreply`, as some servers need it.

    The library puts the space into all stores, even with `noreply`, and into no other command.
    """

    def _encode_cmd(self, cmd, key, headers, noreply, *data):
        line = super()._encode_cmd(cmd, key, headers, noreply)
        return b"".join((line, b"" if noreply else b" ", *data))


class Session(BaseSession):
    """The client of one thread, and the last line that it read."""

    def __init__(self, setup):
        options = {"socket_timeout": setup.timeout_s, "dead_retry": 0} if setup.common else {}
        # By an option, it keeps the tokens of `gets` itself; without a token its `cas` is a `set`.
        options["cache_cas"] = "cas" in setup.kinds
        made = SpacedClient if "trailing_space" in setup.options else memcache.Client
        self.client = made([address(server) for server in setup.servers], **options)
        self._line, self._lost = b"", None
        for server in self.client.servers:
            self._watch(server)
            if not server.connect():
                raise ConnectionError(self._lost)

    def _watch(self, server):
        """Remember each line that it reads, and why it gave up a connection.

        This is the only addition to the library's own path, some 0.1 µs for each line. Without it,
        a reply such as SERVER_ERROR would look like a miss.
        """
        read, mark_dead = server.readline, server.mark_dead

        def readline(raise_exception=False):
            self._line = line = read(raise_exception)
            return line

        def note(reason):
            self._lost = reason
            mark_dead(reason)

        server.readline, server.mark_dead = readline, note

    def _sure(self, code, answers=()):
        """The result of a call: a code, or else the meaning of the last line read."""
        line, lost = self._line, self._lost
        self._line, self._lost = b"", None
        if code is not None:
            return code
        if lost is not None:
            timed_out = isinstance(lost, TimeoutError) or "timed out" in str(lost)
            return TIMEOUT if timed_out else CONNECTION
        if line in answers:
            return answers[line]
        if line:
            return reply_fault(line.decode("latin-1"))
        dead = any(server.socket is None for server in self.client.servers)
        return CONNECTION if dead else CLIENT  # the library did not send it

    def found(self, value, op):
        return self._sure(None if value is None else found(value, op), {b"END": 0})

    def found_many(self, values, op):
        code = found_many(values, op)
        return self._sure(code if code == op.ok_code else None, {b"END": code})

    def stored(self, result, op):
        return self._sure(op.ok_code if result else None, {b"NOT_STORED": SERVER})

    def stored_many(self, failed, op):
        refused = {b"NOT_STORED": SERVER, b"STORED": SERVER}  # the line of the last key
        return self._sure(None if failed or self._lost else op.ok_code, refused)

    def accepted(self, result, op):
        return self._sure(op.ok_code if result else None, {b"NOT_STORED": op.ok_code | 1})

    def known(self, result, op):
        return self._sure(op.ok_code if result else None, {b"NOT_FOUND": 0})

    def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        read = self.client.gets(key)
        return read, read is not None and self.client.cas(key, value, exptime_s)

    def swapped(self, answer, op):
        read, result = answer
        code = swapped(answer, op)
        if read is None:
            return self._sure(None, {b"END": 0})
        refused = {b"EXISTS": code, b"NOT_FOUND": 0}
        return self._sure(code if result else None, refused)

    def counted(self, number, op):
        return self._sure(None if number is None else counted(number, op), {b"NOT_FOUND": 0})

    def sent(self, result, op):
        return self._sure(op.ok_code if result else None)

    def sent_many(self, failed, op):
        return self._sure(None if failed or self._lost else op.ok_code)

    def failure(self, error, op):
        line = self._line
        self._sure(0)
        if isinstance(error, (memcache.Client.MemcachedKeyError, TypeError)):
            return CLIENT
        if isinstance(error, ValueError) and line:  # it read an error line as a number
            return reply_fault(line.decode("latin-1"))
        return network_fault(error) or PROTOCOL

    def barrier(self):
        # It has no `version`; `stats` is neither a get nor a set.
        answers = self.client.get_stats()
        if len(answers) < len(self.client.servers):
            raise ConnectionError(self._lost)
        return len(answers)

    def close(self):
        self.client.disconnect_all()


def address(server):
    """A server in the form that the library takes."""
    if server.path:
        return f"unix:{server.path}"
    if ":" in server.host:
        return f"inet6:[{server.host}]:{server.port}"
    return f"{server.host}:{server.port}"
