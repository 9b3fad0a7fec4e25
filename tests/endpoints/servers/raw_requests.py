"""Raw bytes to a server, for tests."""

import socket

from cachemark.model.address import parse_host_port


def connect(address: str) -> socket.socket:
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address.removeprefix("unix:"))
        return connection
    return socket.create_connection(parse_host_port(address), 10)


def ask(address: str, request: bytes, end: bytes = b"\r\n") -> bytes:
    """Send a request on a connection of its own; the reply, which ends so."""
    reply = b""
    with connect(address) as connection:
        connection.sendall(request)
        while not reply.endswith(end):
            chunk = connection.recv(4096)
            assert chunk, reply
            reply += chunk
    return reply
