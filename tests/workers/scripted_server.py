"""A memcached for tests: it answers wrongly, late or never on request, and notes writes."""

import contextlib
import socketserver
import threading
from collections.abc import Callable, Generator
from typing import Any

# From a key and its value to the reply to a read of it; None is silence.
Reply = Callable[[bytes, bytes], bytes | None]


def value(key: bytes, data: bytes) -> bytes:
    """An honest hit."""
    return b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key, len(data), data)


class Scripted(socketserver.ThreadingTCPServer):
    """One item store for all connections; `reply` says how single reads are answered."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.reply = reply
        self.items: dict[bytes, bytes] = {}
        self.writes: list[tuple[bytes, ...]] = []
        self.stopped = threading.Event()

    @property
    def address(self) -> str:
        """Where it listens, in a worker's form."""
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"


class _Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while line := self.rfile.readline():
                reply = self._answer(line.split())
                if reply is None:
                    self.server.stopped.wait()
                    return
                self.wfile.write(reply)

    server: Any

    def _answer(self, words: list[bytes]) -> bytes | None:
        if words[0] in (b"get", b"gets"):
            data = self.server.items.get(words[1])
            return b"END\r\n" if data is None else self.server.reply(words[1], data)
        if words[0] == b"set":
            data = self.rfile.read(int(words[4]) + 2)[:-2]
            self.server.items[words[1]] = data
            self.server.writes.append((*words, data))
            return b"STORED\r\n"
        if words[0] == b"stats":
            return b"STAT pid 1\r\nEND\r\n"
        return b"VERSION 1.6.0\r\n" if words[0] == b"version" else b"ERROR\r\n"


@contextlib.contextmanager
def scripted(reply: Reply = value) -> Generator[Scripted]:
    """A scripted server that runs, and is gone at the end of the context."""
    with Scripted(reply) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            server.shutdown()
            thread.join()
