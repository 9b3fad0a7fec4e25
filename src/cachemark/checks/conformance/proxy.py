"""A proxy between a client and memcached that records requests and can inject faults into reads.

It works with every protocol, because the server behind it is memcached.
"""

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Generator
from typing import Literal, NamedTuple

from cachemark.checks.conformance.requests import Command, RequestReader, SentRequest
from cachemark.endpoints.probe.observation import CHUNK_BYTES, Relay
from cachemark.endpoints.servers.binary_control import HEADER

ReplyFault = Literal["", "corrupt", "silence", "error", "hold", "late", "slow", "lost", "flags"]

_FLAGS_BYTES = 4
# Flags without a meaning in any library: only a client that checks flags notices them.
_OTHER_FLAGS = b"1048576"
# Flags in text replies, and in meta replies if the client asked for them.
_TEXT_FLAGS = re.compile(rb"(^VALUE \S+ |^VA \d+[^\r\n]*? f)\d+", re.MULTILINE)


class ErrorReply(NamedTuple):
    """An error of the server: its line of text, and its status and words in binary."""

    line: bytes
    status: int
    text: bytes


OUT_OF_MEMORY = ErrorReply(b"SERVER_ERROR out of memory reading request", 0x82, b"Out of memory")
BAD_REQUEST = ErrorReply(b"CLIENT_ERROR bad command line format", 0x04, b"Invalid arguments")


class ReplyProxy(Relay):
    """A listening proxy, which applies `fault` to reads or writes from now on.

    `corrupt`: it changes the last byte of each of `values` in replies. `flags`: it changes the
    flags of items. `silence`: it drops a read, whose connection then hangs. `error`: it answers a
    read with the error `error`. `hold`: reads wait for `release`. `late`: the next read reaches the
    server `late_s` later; `slow`: all reads do. `lost`: it stores a `set` under another key, so the
    client gets the reply, but the value is gone.
    """

    def __init__(self, upstream: str) -> None:
        self.fault: ReplyFault = ""
        self.error = OUT_OF_MEMORY
        self.late_s = 0.0
        self.values: list[bytes] = []
        self.commands: list[Command] = []
        self.wires: set[str] = set()
        self.first_bytes: list[int] = []
        self.held, self.release = threading.Event(), threading.Event()
        super().__init__(upstream)

    @property
    def writes(self) -> list[Command]:
        """Every `set` that was sent."""
        return [command for command in self.commands if command.verb == "set"]

    def close(self) -> None:
        self.release.set()
        super().close()

    def requests(self, client: socket.socket, server: socket.socket) -> None:
        """Pass requests on, or apply the fault."""
        reader, first = RequestReader(), True
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                if first:
                    self.first_bytes.append(data[0])
                    first = False
                for request in reader.feed(data):
                    if not self._pass(request, client, server):
                        self.release.wait()

    def _pass(self, request: SentRequest, client: socket.socket, server: socket.socket) -> bool:
        """Pass a request on, or apply the fault; False if the connection must hang."""
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

    def replies(self, data: bytes) -> bytes:
        """Replies, changed by the fault."""
        if self.fault == "flags":
            return _flagged(data)
        return self._corrupted(data) if self.fault == "corrupt" else data

    def _corrupted(self, data: bytes) -> bytes:
        for value in self.values:
            data = data.replace(value, value[:-1] + bytes([value[-1] ^ 1]))
        return data


def _flagged(replies: bytes) -> bytes:
    """Replies whose items have other flags. Each comes whole: the cases have small replies."""
    if replies[:1] != b"\x81":
        return _TEXT_FLAGS.sub(lambda found: found[1] + _OTHER_FLAGS, replies)
    changed, at = bytearray(replies), 0
    while at < len(replies):
        extras, body = replies[at + 4], int.from_bytes(replies[at + 8 : at + 12], "big")
        if extras == _FLAGS_BYTES:
            place = at + HEADER.size
            changed[place : place + _FLAGS_BYTES] = struct.pack(">I", int(_OTHER_FLAGS))
        at += HEADER.size + body
    return bytes(changed)


def _elsewhere(request: SentRequest) -> bytes:
    """A request whose writes go to keys that no client reads."""
    raw = request.raw
    for command in request.commands:
        if command.verb == "set":
            raw = raw.replace(command.key, b"~" + command.key[1:], 1)
    return raw


def _error_reply(request: SentRequest, error: ErrorReply) -> bytes:
    if request.wire != "binary":
        return error.line + b"\r\n"
    size = len(error.text)
    head = HEADER.pack(0x81, request.opcode, 0, 0, 0, error.status, size, request.opaque, 0)
    return head + error.text


@contextlib.contextmanager
def proxied(upstream: str) -> Generator[ReplyProxy]:
    """Run a proxy in front of a server; the end of the context closes it."""
    with contextlib.closing(ReplyProxy(upstream)) as proxy:
        yield proxy
