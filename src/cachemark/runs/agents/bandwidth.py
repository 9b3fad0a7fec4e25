"""The bytes per second from the server's host to another host, over one TCP connection.

It is an estimate: Python sends and receives, so a fast network may carry more.
"""

import contextlib
import socket
import threading
import time

from cachemark.model.errors import TrialError

_SEND_S = 0.5
# A host connects at once on request.
_CONNECT_S = 10.0
_CHUNK_BYTES = 1 << 18


def offer_bytes(address: str) -> int:
    """Listen on any free port for one connection, and send it zeros; returns the port."""
    listening = socket.create_server((address, 0))
    listening.settimeout(_CONNECT_S)
    threading.Thread(target=_send, args=(listening,), name="bandwidth", daemon=True).start()
    return int(listening.getsockname()[1])


def receive_bytes(address: str, port: int) -> float:
    """Read until the sender closes; returns bytes per second. Raises TrialError."""
    try:
        with socket.create_connection((address, port), _CONNECT_S) as connection:
            return _received_rate(connection)
    except OSError as error:
        raise TrialError(
            f"no bytes came from the server's host, {address}:{port}: {error}",
            "let the hosts reach each other on all ports: servers listen on free ones",
        ) from error


def _received_rate(connection: socket.socket) -> float:
    buffer = bytearray(_CHUNK_BYTES)
    received, began_ns = 0, time.monotonic_ns()
    while count := connection.recv_into(buffer):
        received += count
    return received * 1e9 / max(1, time.monotonic_ns() - began_ns)


def _send(listening: socket.socket) -> None:
    zeros = bytes(_CHUNK_BYTES)
    # The other side reports an error if its host does not connect, or leaves early.
    with listening, contextlib.suppress(OSError):
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(_CONNECT_S)
            deadline = time.monotonic() + _SEND_S
            # At least once, however long this thread has waited for a CPU.
            connection.sendall(zeros)
            while time.monotonic() < deadline:
                connection.sendall(zeros)
