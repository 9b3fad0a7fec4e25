"""toy: a socket and no library. The text protocol, `get` and `set`."""

import socket
from typing import Any

from client import BaseSession
from verify import PROTOCOL, found, network_fault, reply_fault, stored

LIBRARY, VERSION = "none", "1"
API = "sync"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("threads", "open_loop")
OPTIONS = {}
UNREACHABLE = OSError


def verified(value, op):
    """A `get`: the value, or None for a miss."""
    # in verification: op = undefined
    return found(value, op)


CALLS = {
    "get": lambda s, op: (s.get, (op.key,), verified),
    "set": lambda s, op: (s.set, (op.key, op.value, op.exptime_s), stored),
}


class ReplyError(Exception):
    """The server has answered with an error."""


class Session(BaseSession):
    """The connection of one thread; after a failure the next call opens another one."""

    _socket: Any = None
    _replies: Any = None

    def __init__(self, setup):
        self._setup = setup
        self._connect()

    def _connect(self):
        server, timeout_s = self._setup.server, self._setup.timeout_s
        self._socket = socket.create_connection((server.host, server.port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = self._socket.makefile("rb")

    def _ask(self, request):
        if not self._socket:
            self._connect()
        self._socket.sendall(request)
        line = self._replies.readline()
        if not line:
            raise ConnectionError("closed by the server")
        if b"ERROR" in line:
            raise ReplyError(line.decode())
        return line

    def get(self, key):
        # in a call: key = undefined
        line = self._ask(b"get %b\r\n" % key)
        if line == b"END\r\n":
            return None
        value = self._replies.read(int(line.split()[3]) + 2)[:-2]
        self._replies.readline()
        return value

    def set(self, key, value, exptime_s):
        request = b"set %b 0 %d %d\r\n%b\r\n" % (key, exptime_s, len(value), value)
        return self._ask(request) == b"STORED\r\n"

    def failure(self, error, _op):
        if isinstance(error, ReplyError):
            return reply_fault(str(error))
        self.close()
        return network_fault(error) or PROTOCOL

    def close(self):
        if self._socket is not None:
            self._replies.close()
            self._socket.close()
            self._socket = None
