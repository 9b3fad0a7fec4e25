"""A memcached for tests whose replies to some commands never end, in text and in binary."""

import contextlib
import socketserver
import struct
import threading
from collections.abc import Generator
from io import BufferedReader
from typing import Any

_HUGE = 4_000_000_000
_BLOCK = b"x" * 65536
_TEXT_ANSWERS = {
    b"set": b"STORED\r\n",
    b"stats": b"STAT pid 1\r\nEND\r\n",
    b"version": b"VERSION 1.6.0\r\n",
}
_OPCODES = {0: b"get", 1: b"set", 9: b"get", 11: b"version", 12: b"get", 13: b"get", 17: b"set"}
_HEADER = struct.Struct(">BBHBBHIIQ")


class _Connection(socketserver.StreamRequestHandler):
    server: Any
    rfile: BufferedReader

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while first := self.rfile.peek(1)[:1]:
                self._binary() if first == b"\x80" else self._text()

    def _text(self) -> None:
        words = self.rfile.readline().split()
        command = b"get" if words[0] == b"gets" else words[0]
        if command == b"set":
            self.rfile.read(int(words[4]) + 2)
        if command == self.server.endless:
            self._never_end(b"VALUE %b 0 %d\r\n" % (words[1], _HUGE) if command == b"get" else b"")
        self.wfile.write(_TEXT_ANSWERS.get(command, b"END\r\n"))

    def _binary(self) -> None:
        _, opcode, _, _, _, _, length, opaque, _ = _HEADER.unpack(self.rfile.read(_HEADER.size))
        self.rfile.read(length)
        command = _OPCODES.get(opcode, b"")
        if command == self.server.endless:
            extras = 4
            self._never_end(
                _HEADER.pack(0x81, opcode, 0, extras, 0, 0, _HUGE, opaque, 0) + bytes(4)
            )
        body = b"1.6.0" if command == b"version" else b""
        self.wfile.write(_HEADER.pack(0x81, opcode, 0, 0, 0, 0, len(body), opaque, 1) + body)

    def _never_end(self, begin: bytes) -> None:
        self.wfile.write(begin)
        while True:
            self.wfile.write(_BLOCK)


class _Endless(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextlib.contextmanager
def endless(command: bytes) -> Generator[str]:
    """The address of a server whose replies to `get` or `set` never end."""
    with _Endless(("127.0.0.1", 0), _Connection) as server:
        server.endless = command  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            host, port = server.server_address[:2]
            yield f"{host!s}:{port}"
        finally:
            server.shutdown()
            thread.join()
