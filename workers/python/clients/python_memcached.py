"""python-memcached: one `Client` for each thread. It tells no failure from a miss; this file does.

It has no way to set TCP_NODELAY. After a failure it takes a server for dead for 30 s, during which
all calls return at once with nothing; `dead_retry=0` makes it connect again at the next call. It
tries a call again itself if the server had closed the connection; that cannot be switched off.
"""

from __future__ import annotations

import memcache

from clients import Base
from judge import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    SERVER,
    TIMEOUT,
    accepted,
    found,
    found_many,
    network,
    reply,
)

LIBRARY = "python-memcached"
API = "sync"
KEYS = str
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "unix")
OPTIONS = ()
UNREACHABLE = OSError


class Session(Base):
    """The client of one thread, and what its last answer really was."""

    def __init__(self, setup):
        address = f"unix:{setup.path}" if setup.path else f"{setup.host}:{setup.port}"
        if ":" in (setup.host or ""):
            address = f"inet6:[{setup.host}]:{setup.port}"
        self._client = memcache.Client([address], socket_timeout=setup.timeout_s, dead_retry=0)
        self._server = self._client.servers[0]
        self._line, self._lost = b"", None
        self._note_answers()
        if not self._server.connect():
            raise ConnectionError(self._lost)

    def _note_answers(self):
        """Remember each line that the library reads, and why it gave a connection up.

        The one addition to the library's own path: it costs some 0.1 µs for each line, without it
        a reply such as SERVER_ERROR could not be told from a miss.
        """
        read, mark_dead = self._server.readline, self._server.mark_dead

        def readline(raise_exception=False):
            self._line = line = read(raise_exception)
            return line

        def note(reason):
            self._lost = reason
            mark_dead(reason)

        self._server.readline, self._server.mark_dead = readline, note

    def _doubt(self, done, *answers):
        """What a call that brought nothing, or not all, came to: `done` if the server said so."""
        lost, self._lost = self._lost, None
        if lost is not None:
            timed_out = isinstance(lost, TimeoutError) or "timed out" in str(lost)
            return TIMEOUT if timed_out else CONNECTION
        if self._server.socket is None:
            return CONNECTION
        if self._line in answers:
            return done
        return reply(self._line.decode("latin-1"))

    def _found(self, value, op):
        return self._doubt(0, b"END") if value is None else found(value, op)

    def _found_many(self, values, op):
        code = found_many(values, op)
        return code if code == op.done else self._doubt(code, b"END")

    def _stored(self, result, op):
        return op.done if result else self._doubt(SERVER, b"NOT_STORED")

    def _stored_many(self, failed, op):
        return self._doubt(SERVER, b"STORED", b"NOT_STORED") if failed else op.done

    def _accepted(self, result, op):
        return accepted(result, op) if result else self._doubt(op.done | 1, b"NOT_STORED")

    def _known(self, result, op):
        return op.done if result else self._doubt(0, b"NOT_FOUND")

    def _sent(self, result, op):
        return op.done if result else self._doubt(CLIENT)

    def _all_sent(self, failed, op):
        return self._doubt(CLIENT) if failed or self._lost is not None else op.done

    def get(self, op):
        return self._client.get, (op.key,), self._found

    def gets(self, op):
        return self._client.gets, (op.key,), self._found

    def mget(self, op):
        return self._client.get_multi, (op.keys,), self._found_many

    def set(self, op):
        return self._client.set, (op.key, op.value, op.exptime_s), self._stored

    def set_noreply(self, op):
        return self._client.set, (op.key, op.value, op.exptime_s, 0, True), self._sent

    def mset(self, op):
        return self._client.set_multi, (op.pairs, op.exptime_s), self._stored_many

    def mset_noreply(self, op):
        return self._client.set_multi, (op.pairs, op.exptime_s, "", 0, True), self._all_sent

    def add(self, op):
        return self._client.add, (op.key, op.value, op.exptime_s), self._accepted

    def add_noreply(self, op):
        return self._client.add, (op.key, op.value, op.exptime_s, 0, True), self._sent

    def replace(self, op):
        return self._client.replace, (op.key, op.value, op.exptime_s), self._accepted

    def replace_noreply(self, op):
        return self._client.replace, (op.key, op.value, op.exptime_s, 0, True), self._sent

    def delete(self, op):
        return self._client.delete, (op.key,), self._known

    def delete_noreply(self, op):
        return self._client.delete, (op.key, True), self._sent

    def touch(self, op):
        return self._client.touch, (op.key, op.exptime_s), self._known

    def touch_noreply(self, op):
        return self._client.touch, (op.key, op.exptime_s, True), self._sent

    def failure(self, error, _op):
        self._lost = None
        if isinstance(error, (memcache.Client.MemcachedKeyError, TypeError)):
            return CLIENT
        return network(error) or PROTOCOL

    def barrier(self):
        # It has no `version`; `stats` is no get and no set either.
        if not self._client.get_stats():
            raise ConnectionError(self._lost)
        return 1

    def close(self):
        self._client.disconnect_all()
