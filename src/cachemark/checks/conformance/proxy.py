"""A proxy between a client and memcached that records requests and can inject faults into reads.

It works with every protocol, because the server behind it is memcached.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable, Generator
from typing import Literal, NamedTuple

from cachemark.checks.conformance.requests import Command, RequestReader, SentRequest
from cachemark.model.address import parse_host_port

ReplyFault = Literal["", "corrupt", "silence", "error", "hold", "late", "slow", "lost", "flags"]

_CHUNK_BYTES = 1 << 16
_HEAD_BYTES, _FLAGS_BYTES = 24, 4
# No library gives these a meaning: only who looks at them sees that they differ.
_OTHER_FLAGS = b"1048576"
# Of text, and of meta where the client has asked for them.
_TEXT_FLAGS = re.compile(rb"(^VALUE \S+ |^VA \d+[^\r\n]*? f)\d+", re.MULTILINE)


class ErrorReply(NamedTuple):
    """An error of the server: its line of text, and its status and words in binary."""

    line: bytes
    status: int
    text: bytes


OUT_OF_MEMORY = ErrorReply(b"SERVER_ERROR out of memory reading request", 0x82, b"Out of memory")
BAD_REQUEST = ErrorReply(b"CLIENT_ERROR bad command line format", 0x04, b"Invalid arguments")


class ReplyProxy:
    """A listening proxy. `fault` says what happens to reads, or to writes, from now on.

    `corrupt`: in replies, the last byte of each of `values` is changed. `flags`: the items in them
    get other flags. `silence`: a read is
    dropped, and its connection hangs. `error`: the reply to a read is the error `error`. `hold`:
    reads wait for `release`. `late`: the next read reaches the server `late_s` later; `slow`: all
    reads do. `lost`: a `set` is stored under another key, so it is answered, and its value is gone.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = parse_host_port(upstream)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.fault: ReplyFault = ""
        self.error = OUT_OF_MEMORY
        self.late_s = 0.0
        self.values: list[bytes] = []
        self.commands: list[Command] = []
        self.wires: set[str] = set()
        self.first_bytes: list[int] = []
        self.held, self.release = threading.Event(), threading.Event()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def address(self) -> str:
        """The address that it listens on, for a worker."""
        host, port = self._listener.getsockname()[:2]
        return f"{host}:{port}"

    @property
    def writes(self) -> list[Command]:
        """Every `set` that was sent."""
        return [command for command in self.commands if command.verb == "set"]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._upstream)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, server]
            self._begin(lambda c=client, s=server: self._requests(c, s))
            self._begin(lambda c=client, s=server: self._replies(c, s))

    def close(self) -> None:
        """Close every connection and end every thread."""
        self.release.set()
        _shut(self._listener)
        # A client may connect at this moment: its sockets are known when the acceptor has ended.
        self._acceptor.join()
        for each in self._sockets:
            _shut(each)
        for thread in self._threads:
            thread.join()

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        reader, first = RequestReader(), True
        with contextlib.suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                if first:
                    self.first_bytes.append(data[0])
                    first = False
                for request in reader.feed(data):
                    if not self._pass(request, client, server):
                        return
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _pass(self, request: SentRequest, client: socket.socket, server: socket.socket) -> bool:
        """Pass a request on, or apply the fault; False if the connection is to hang."""
        self.wires.add(request.wire)
        self.commands += request.commands
        if request.reads and self.fault == "silence":
            return False
        if request.reads and self.fault == "error":
            client.sendall(_error_reply(request, self.error))
            return True
        if request.reads and self.fault in ("late", "slow", "hold"):
            longest_s = None if self.fault == "hold" else self.late_s
            self.fault = "" if self.fault == "late" else self.fault
            self.held.set()
            self.release.wait(longest_s)
        server.sendall(_elsewhere(request) if self.fault == "lost" else request.raw)
        return True

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_CHUNK_BYTES):
                client.sendall(self._altered(data))
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _altered(self, data: bytes) -> bytes:
        if self.fault == "flags":
            return _flagged(data)
        return self._corrupted(data) if self.fault == "corrupt" else data

    def _corrupted(self, data: bytes) -> bytes:
        for value in self.values:
            data = data.replace(value, value[:-1] + bytes([value[-1] ^ 1]))
        return data


def _flagged(replies: bytes) -> bytes:
    """Replies whose items have other flags. They are whole: those of the cases are small."""
    if replies[:1] != b"\x81":
        return _TEXT_FLAGS.sub(lambda found: found[1] + _OTHER_FLAGS, replies)
    changed, at = bytearray(replies), 0
    while at < len(replies):
        extras, body = replies[at + 4], int.from_bytes(replies[at + 8 : at + 12], "big")
        if extras == _FLAGS_BYTES:
            place = at + _HEAD_BYTES
            changed[place : place + _FLAGS_BYTES] = struct.pack(">I", int(_OTHER_FLAGS))
        at += _HEAD_BYTES + body
    return bytes(changed)


def _elsewhere(request: SentRequest) -> bytes:
    """A request whose writes go to keys that nobody reads."""
    raw = request.raw
    for command in request.commands:
        if command.verb == "set":
            raw = raw.replace(command.key, b"~" + command.key[1:], 1)
    return raw


def _error_reply(request: SentRequest, error: ErrorReply) -> bytes:
    if request.wire != "binary":
        return error.line + b"\r\n"
    head = struct.pack(
        ">BBHBBHIIQ",
        0x81,
        request.opcode,
        0,
        0,
        0,
        error.status,
        len(error.text),
        request.opaque,
        0,
    )
    return head + error.text


def _shut(end: socket.socket) -> None:
    """Close a socket; a thread that waits on it goes on."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextlib.contextmanager
def proxied(upstream: str) -> Generator[ReplyProxy]:
    """Run a proxy in front of a server; the end of the context closes it."""
    with contextlib.closing(ReplyProxy(upstream)) as proxy:
        yield proxy
