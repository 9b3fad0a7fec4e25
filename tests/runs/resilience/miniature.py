"""Miniature clients: one that does nothing wrong, and one for each way to be wrong.

A copy of this file in the Python worker's folder is a client, whose name is its way.
"""

import os
import socket
import ssl
import threading
import time
from typing import Any, NamedTuple

from client import BaseSession
from verify import PROTOCOL, found, network_fault, reply_fault, stored

LIBRARY, VERSION = "none", "1"
API = "sync"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "cluster", "tls")
OPTIONS = {}
UNREACHABLE = OSError


class Way(NamedTuple):
    """A client's ways with failures, and its checks."""

    # Of the worker's time-out; None waits for ever.
    timeout_share: float | None = 1.0
    closes: bool = True
    checks_key: bool = True
    retries: bool = False
    errors_are_misses: bool = False
    leaked_sockets: int = 0
    extra_connections: int = 0
    accepts_parts: bool = False
    resolves_once: bool = False
    # How long a failure of one server sends its keys to the next one, or fails the keys of all.
    moves_keys_s: float = 0.0
    fails_all_s: float = 0.0
    closes_interrupted: bool = True
    aborts: bool = False
    left_threads: int = 0
    # Of a certificate: the name in it, and everything else.
    checks_host: bool = True
    checks_certificate: bool = True


WAYS = {
    "perfect": Way(),
    "next_reply": Way(closes=False, checks_key=False),
    "waits": Way(timeout_share=None),
    "retries": Way(retries=True),
    # A worker counts a miss that takes as long as its time-out as a time-out.
    "hides_errors": Way(errors_are_misses=True, timeout_share=0.5),
    "crashes": Way(aborts=True),
    "leaks": Way(leaked_sockets=32),
    "any_key": Way(checks_key=False),
    "accepts_parts": Way(accepts_parts=True),
    "storms": Way(extra_connections=150),
    "resolves_once": Way(resolves_once=True),
    "moves_keys": Way(moves_keys_s=0.5),
    "fails_all": Way(fails_all_s=0.5),
    "rests": Way(fails_all_s=4.0),
    "leaves_threads": Way(left_threads=16),
    "trusts_all": Way(checks_host=False, checks_certificate=False),
    "trusts_names": Way(checks_host=False),
    "keeps_interrupted": Way(checks_key=False, closes_interrupted=False),
}
WAY = WAYS[__name__.rpartition(".")[2]]


def verified(value, op):
    """A `get`: the value, or None for a miss."""
    return found(value, op)


CALLS = {
    "get": lambda s, op: (s.get, (op.key,), verified),
    "set": lambda s, op: (s.set, (op.key, op.value, op.exptime_s), stored),
}


class ReplyError(Exception):
    """The server has answered with an error, or with another key."""


class Connection:
    """The connection to one server; after a failure the next call opens another one."""

    def __init__(self, server, timeout_s, tls):
        self._tls, self._host = tls, server.host
        self._address = (server.host, server.port)
        if WAY.resolves_once:
            self._address = (socket.gethostbyname(server.host), server.port)
        share = WAY.timeout_share
        self._timeout_s = None if share is None else timeout_s * share
        self._kept = []
        self._socket: Any = None
        self._left = b""
        self._connect()

    def _open(self):
        opened = socket.create_connection(self._address, self._timeout_s)
        return self._tls.wrap_socket(opened, server_hostname=self._host) if self._tls else opened

    def _connect(self):
        self._socket, self._left = self._open(), b""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _read(self, is_whole):
        """Read until it is whole; what came before a time-out is kept."""
        while not is_whole(self._left):
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("closed by the server")
            self._left += data

    def _take(self, length):
        taken, self._left = self._left[:length], self._left[length:]
        return taken

    def _ask(self, request):
        if not self._socket:
            self._connect()
        self._socket.sendall(request)
        self._read(lambda left: b"\r\n" in left)
        line = self._left[: self._left.index(b"\r\n")]
        if b"ERROR" in line:
            raise ReplyError(line.decode())
        return line

    def get(self, key):
        line = self._ask(b"get %b\r\n" % key)
        if line == b"END":
            self._take(5)
            return None
        words = line.split()
        if words[0] != b"VALUE" or (WAY.checks_key and words[1] != key):
            raise ReplyError("the reply belongs to another request")
        begin, length = len(line) + 2, int(words[3])
        whole = begin + length + len(b"\r\nEND\r\n")
        try:
            self._read(lambda left: len(left) >= whole)
        except ConnectionError:
            if not WAY.accepts_parts:
                raise
            self.close()
        return self._take(whole)[begin : begin + length]

    def set(self, key, value, exptime_s):
        line = self._ask(b"set %b 0 %d %d\r\n%b\r\n" % (key, exptime_s, len(value), value))
        if line != b"STORED":
            raise ReplyError("the reply belongs to another request")
        self._take(len(line) + 2)
        return True

    def after_failure(self):
        if WAY.aborts:
            os.abort()
        self._kept += [self._open_quietly() for _ in range(WAY.leaked_sockets)]
        for _ in range(WAY.left_threads):
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        for _ in range(WAY.extra_connections):
            if (extra := self._open_quietly()) is not None:
                extra.close()
        if WAY.closes:
            self.close()

    def _open_quietly(self):
        try:
            return self._open()
        except OSError:
            return None

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Session(BaseSession):
    """The connections of one thread, one to each server; the key selects the server."""

    def __init__(self, setup):
        tls = setup.tls_context()
        if tls is not None:
            tls.check_hostname = WAY.checks_host
            tls.verify_mode = ssl.CERT_REQUIRED if WAY.checks_certificate else ssl.CERT_NONE
        self._connections = [Connection(server, setup.timeout_s, tls) for server in setup.servers]
        self._failed_at_s = [-1e9] * len(self._connections)

    def get(self, key):
        return self._call(key, lambda connection: connection.get(key))

    def set(self, key, value, exptime_s):
        stored = self._call(key, lambda connection: connection.set(key, value, exptime_s))
        return bool(stored)

    def _call(self, key, ask):
        while True:
            at = self._server_of(key)
            connection = self._connections[at]
            try:
                return ask(connection)
            except KeyboardInterrupt:
                if WAY.closes_interrupted:
                    connection.close()
                raise
            except (OSError, ReplyError):
                self._failed_at_s[at] = time.monotonic()
                connection.after_failure()
                if WAY.errors_are_misses:
                    return None
                if not WAY.retries:
                    raise
                time.sleep(0.01)

    def _server_of(self, key):
        now_s = time.monotonic()
        if now_s - max(self._failed_at_s) < WAY.fails_all_s:
            raise ConnectionError("a server has failed")
        at = sum(key) % len(self._connections)
        if now_s - self._failed_at_s[at] < WAY.moves_keys_s:
            at = (at + 1) % len(self._connections)
        return at

    def failure(self, error, _op):
        if isinstance(error, ReplyError):
            return reply_fault(str(error))
        return network_fault(error) or PROTOCOL

    def close(self):
        for connection in self._connections:
            connection.close()
