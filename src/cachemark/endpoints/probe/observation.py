"""Observes clients and servers: the first bytes of each connection, the server's threads."""

import contextlib
import socket
import threading

from cachemark.endpoints.probe.raw_connection import RawConnection
from cachemark.endpoints.servers import RunningServer
from cachemark.endpoints.servers.control_connection import connect

_TIMEOUT_S = 5.0
CHUNK_BYTES = 1 << 16


class Relay:
    """A relay between clients and a server; subclasses see or change the bytes. Never time it."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def requests(self, client: socket.socket, server: socket.socket) -> None:
        """Carry what a client sends, until it ends."""
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                server.sendall(data)

    def replies(self, data: bytes) -> bytes:
        """The bytes that the client gets instead of the server's `data`."""
        return data

    def close(self) -> None:
        """Close every connection, and end every thread."""
        # `close` alone would not wake a thread that waits.
        _shut_down(self._listener)
        # A client may connect at this moment: its sockets are known when the acceptor has ended.
        self._acceptor.join()
        for one in self._sockets:
            _shut_down(one)
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            try:
                server = connect(self._upstream, _TIMEOUT_S)
            except OSError:
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.settimeout(None)
            self._sockets += [client, server]
            for carry in (self._requests, self._replies):
                thread = threading.Thread(target=carry, args=(client, server), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        self.requests(client, server)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK_BYTES):
                client.sendall(self.replies(data))
        _shut_down(client)


def _shut_down(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class RecordingRelay(Relay):
    """Records the first bytes that each connection sends: `streams`, one for each so far."""

    def __init__(self, upstream: str, max_bytes: int = 4096) -> None:
        self.streams: list[bytearray] = []
        self._max_bytes = max_bytes
        super().__init__(upstream)

    def requests(self, client: socket.socket, server: socket.socket) -> None:
        """Carry what a client sends, and record how it begins."""
        recorded = bytearray()
        self.streams.append(recorded)
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                recorded += data[: self._max_bytes - len(recorded)]
                server.sendall(data)


def threads_with(server: RunningServer, count: int) -> tuple[int, int] | None:
    """A server's threads before and with `count` connections; None where they cannot be seen.

    Raises AnswerError if it does not serve `count` connections.
    """
    idle = server.use()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(RawConnection(server.addresses[0]))
            connection.ask(b"version\r\n", rb"VERSION [^\r]*\r\n")
        busy = server.use()
    return None if idle is None or busy is None else (idle.threads, busy.threads)
