"""Observes clients and servers: the first bytes of each connection, the server's threads."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator

from cachemark.endpoints.probe.raw_connection import RawConnection
from cachemark.endpoints.servers import RunningServer
from cachemark.endpoints.servers.control_connection import connect

_TIMEOUT_S = 5.0
_CHUNK_BYTES = 1 << 16


class RecordingRelay:
    """A relay that clients connect to. It records the first bytes that each connection sends."""

    def __init__(self, listener: socket.socket, upstream: str, max_bytes: int) -> None:
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        self._listener = listener
        self._upstream = upstream
        self._max_bytes = max_bytes
        self._streams: list[bytearray] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def streams(self) -> list[bytes]:
        """The first bytes of each connection so far."""
        return [bytes(stream) for stream in self._streams]

    def serve(self) -> None:
        """Accept connections until the listener is shut down."""
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            try:
                far = connect(self._upstream, _TIMEOUT_S)
            except OSError:
                near.close()
                continue
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far.settimeout(None)
            self._sockets += [near, far]
            recorded = bytearray()
            self._streams.append(recorded)
            for source, sink, record in ((near, far, recorded), (far, near, None)):
                thread = threading.Thread(target=self._relay, args=(source, sink, record))
                self._threads.append(thread)
                thread.start()

    def _relay(
        self, source: socket.socket, sink: socket.socket, recorded: bytearray | None
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                if recorded is not None and len(recorded) < self._max_bytes:
                    recorded += chunk[: self._max_bytes - len(recorded)]
                sink.sendall(chunk)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close every connection."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()


@contextlib.contextmanager
def recording_relay(upstream: str, max_bytes: int = 4096) -> Generator[RecordingRelay]:
    """Run a relay in front of a server that records the first bytes of each connection.

    For observation only: nothing may be timed through it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = RecordingRelay(listener, upstream, max_bytes)
        thread = threading.Thread(target=relay.serve)
        thread.start()
        try:
            yield relay
        finally:
            # `close` alone would not wake a thread that waits in `accept`.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            relay.close()


def threads_with(server: RunningServer, count: int) -> tuple[int, int] | None:
    """A server's threads before and with so many connections; None where they cannot be seen.

    Raises AnswerError when it does not serve so many.
    """
    idle = server.use()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(RawConnection(server.addresses[0]))
            connection.ask(b"version\r\n", rb"VERSION [^\r]*\r\n")
        busy = server.use()
    return None if idle is None or busy is None else (idle.threads, busy.threads)
