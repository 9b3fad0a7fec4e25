"""One connection to a memcached server: an operation out, its reply in, verified and counted.

This is the part that a worker for a real client library replaces by calls of that library.
"""

import socket
from collections import Counter

from tape import Operation, Tape

# How many keys each reply says were found. What is not here, and no error, is no reply.
FOUND = {b"STORED": 0, b"VERSION": 0, b"DELETED": 1, b"NOT_FOUND": 0}
ERRORS = {b"ERROR": "client", b"CLIENT_ERROR": "client", b"SERVER_ERROR": "server"}
READS = ("get", "mget")


class RefusedError(Exception):
    """The server answered with an error; the argument is the kind that it counts as."""


FAILURES = (RefusedError, OSError, ValueError)


def kind_of(error: Exception) -> str:
    """The kind of error that a failure counts as."""
    if isinstance(error, RefusedError):
        return str(error)
    if isinstance(error, OSError):
        return "timeout" if isinstance(error, TimeoutError) else "connection"
    return "protocol"


class Connection:
    """A socket that is connected. Raises OSError when it cannot be."""

    def __init__(self, server: str, timeout_s: float) -> None:
        host, port = server.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def close(self) -> None:
        self.replies.close()
        self.socket.close()

    def ask(self, operation: Operation, tape: Tape) -> Counter[str]:
        """Do one operation: what to count. Raises one of FAILURES."""
        self.socket.sendall(operation.request)
        count = Counter(keys=len(operation.keys), key_bytes=operation.key_bytes)
        count["value_bytes"] = operation.value_bytes
        if operation.verb in READS:
            self.read_values(operation, tape, count)
        elif not operation.noreply:
            for _ in operation.keys if operation.verb == "mset" else [0]:
                count["hits"] += self.read_answer()
        if operation.verb in (*READS, "delete") and not operation.noreply:
            count["misses"] = len(operation.keys) - count["hits"]
        return count

    def read_values(self, operation: Operation, tape: Tape, count: Counter[str]) -> None:
        wanted = iter(operation.keys)  # the server leaves out what it lacks, and keeps the order
        while (words := self.line()) != [b"END"]:
            _, name, flags, length = words
            value = self.replies.read(int(length) + 2)[:-2]
            key = next((k for k in wanted if tape.keys[k] == name), None)
            wrong = flags != b"0" or len(value) > tape.pool_bytes
            wrong = wrong or value != tape.value(key or 0, len(value))
            if key is None or (wrong and tape.verified):
                count["wrong_values"] = 1
            count["hits"] += 1
            count["value_bytes"] += len(value)

    def read_answer(self) -> int:
        word = self.line()[0]
        if word not in FOUND:
            raise ValueError(f"not a reply: {word!r}")
        return FOUND[word]

    def line(self) -> list[bytes]:
        words = self.replies.readline().split()
        if not words:
            raise ConnectionError("the server closed the connection")
        if words[0] in ERRORS:
            raise RefusedError(ERRORS[words[0]])
        return words
