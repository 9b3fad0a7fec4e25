"""socket: no library. The bytes of a request are made before the window; one `sendall` sends them.

So it shows the cost of the interpreter and the operating system, and hence a library's own cost.
An operation without a reply is the `sendall` alone.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

from client import BaseSession
from verify import (
    PROTOCOL,
    TIMEOUT,
    accepted,
    counted,
    found,
    found_many,
    known,
    network_fault,
    plain,
    reply_fault,
    sent,
    stored,
    stored_many,
)

LIBRARY, VERSION = "none", "1"
API = "sync"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "in_order", "unix", "trailing_space")
OPTIONS = {"trailing_space": ("yes",)}
UNREACHABLE = OSError

_RECEIVE_BYTES = 1 << 16
_FAULTS = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")
_STORES = {b"STORED": True, b"NOT_STORED": False}
_CHANGES = {b"DELETED": True, b"TOUCHED": True, b"NOT_FOUND": False}

CALLS = {
    "get": lambda s, op: (s.get, (_get(op),), found),
    "mget": lambda s, op: (s.get_many, (_get(op),), found_many),
    "set": lambda s, op: (s.store, (_stores(s, op),), stored),
    "add": lambda s, op: (s.store, (_stores(s, op),), accepted),
    "replace": lambda s, op: (s.store, (_stores(s, op),), accepted),
    "mset": lambda s, op: (s.store_many, (_stores(s, op), len(op.keys)), stored_many),
    "delete": lambda s, op: (s.change, (_line(s, op),), known),
    "touch": lambda s, op: (s.change, (_line(s, op, op.exptime_s),), known),
    "incr": lambda s, op: (s.step, (_line(s, op, op.amount),), counted),
    "decr": lambda s, op: (s.step, (_line(s, op, op.amount),), counted),
    "version": lambda s, op: (s.version, (), sent),
    "set_noreply": lambda s, op: (s.sock.sendall, (_stores(s, op),), sent),
    "add_noreply": lambda s, op: (s.sock.sendall, (_stores(s, op),), sent),
    "replace_noreply": lambda s, op: (s.sock.sendall, (_stores(s, op),), sent),
    "mset_noreply": lambda s, op: (s.sock.sendall, (_stores(s, op),), sent),
    "delete_noreply": lambda s, op: (s.sock.sendall, (_line(s, op),), sent),
    "touch_noreply": lambda s, op: (s.sock.sendall, (_line(s, op, op.exptime_s),), sent),
    "incr_noreply": lambda s, op: (s.sock.sendall, (_line(s, op, op.amount),), sent),
    "decr_noreply": lambda s, op: (s.sock.sendall, (_line(s, op, op.amount),), sent),
}


def _get(op):
    return b"get %b\r\n" % b" ".join(op.keys)


def _stores(session, op):
    """A line and a value for each key of an operation."""
    verb, end = _verb(session, op)
    return b"".join(
        b"%b %b 0 %d %d%b%b\r\n" % (verb, key, op.exptime_s, len(value), end, value)
        for key, value in zip(op.keys, op.values)
    )


def _line(session, op, *numbers):
    """A command that is one line, on one key."""
    verb, end = _verb(session, op)
    return b" ".join((verb, op.key, *(b"%d" % number for number in numbers))) + end


def _verb(session, op):
    """The first word of an operation's lines, and how they end."""
    verb, _, quiet = op.kind.partition("_")
    end = b" noreply\r\n" if quiet else session.line_end
    return (b"set" if verb == "mset" else verb.encode()), end


class UnexpectedReply(Exception):  # noqa: N818
    """A line that does not answer the request."""


class Session(BaseSession):
    """The connection of one thread."""

    def __init__(self, setup):
        self._setup = setup
        self.line_end = b" \r\n" if "trailing_space" in setup.options else b"\r\n"
        self._received = bytearray()
        self.sock = self._connect()

    def _connect(self):
        server, common = self._setup.server, self._setup.common
        timeout_s = self._setup.timeout_s if common else None
        if server.path:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout_s)
            sock.connect(server.path)
        else:
            sock = socket.create_connection((server.host, server.port), timeout_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, common)
        sock.settimeout(None)
        if timeout_s is not None:
            # The kernel's time-outs: with its own, Python polls before each call.
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                sock.setsockopt(socket.SOL_SOCKET, option, _timeval(timeout_s))
        return sock

    def get(self, request):
        """The value of the key, or None."""
        for value in self.get_many(request).values():
            return value
        return None

    def get_many(self, request):
        """The values that are there, by key."""
        self.sock.sendall(request)
        values = {}
        while (line := self._receive_line()) != b"END":
            words = line.split(b" ")
            if words[0] != b"VALUE" or len(words) < 4:
                raise UnexpectedReply(line)
            value = self._receive(int(words[3]) + 2)[:-2]
            values[words[1]] = plain(value, int(words[2]))
        return values

    def store(self, request):
        """Whether it was stored."""
        self.sock.sendall(request)
        return self._one_of(_STORES)

    def store_many(self, request, count):
        """The replies for keys that were not stored."""
        self.sock.sendall(request)
        return [answer for answer in (self._one_of(_STORES) for _ in range(count)) if not answer]

    def change(self, request):
        """Whether there was such a key."""
        self.sock.sendall(request)
        return self._one_of(_CHANGES)

    def step(self, request):
        """The counter's new number, or None."""
        self.sock.sendall(request)
        line = self._receive_line()
        return None if line == b"NOT_FOUND" else int(line)

    def version(self):
        """The server's version; it is answered after all that was sent before."""
        self.sock.sendall(b"version\r\n")
        return self._receive_line()

    def _one_of(self, answers):
        line = self._receive_line()
        if line not in answers:
            raise UnexpectedReply(line)
        return answers[line]

    def _receive_line(self):
        received = self._received
        while (end := received.find(b"\r\n")) < 0:
            self._receive_more()
        line = bytes(received[:end])
        del received[: end + 2]
        if line.startswith(_FAULTS):
            raise UnexpectedReply(line)
        return line

    def _receive(self, size):
        while len(self._received) < size:
            self._receive_more()
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def _receive_more(self):
        data = self.sock.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._received += data

    def failure(self, error, op):
        self._connect_again()
        if isinstance(error, BlockingIOError):  # a time-out of the kernel
            return TIMEOUT
        if isinstance(error, UnexpectedReply):
            return reply_fault(error.args[0].decode("latin-1"))
        return network_fault(error) or PROTOCOL

    def _connect_again(self):
        """Reconnect, so that the rest of a reply never answers the next request.

        Prepared calls hold the socket, so the new connection takes over its file descriptor. If
        this fails, the next call fails, and then this is tried again.
        """
        self._received.clear()
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        with suppress(OSError), self._connect() as fresh:
            os.dup2(fresh.fileno(), self.sock.fileno(), inheritable=False)

    def barrier(self):
        self.version()
        return 1

    def close(self):
        self.sock.close()


def _timeval(seconds):
    """A time in the kernel's form."""
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1e6))
