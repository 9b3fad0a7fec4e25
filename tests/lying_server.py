"""A memcached that lies about writes: `python lying_server.py LIE HONEST_WRITES PORT`, or `lying`.

A proxy before a memcached; the program starts that too. After HONEST_WRITES it lies: `lost` stores
no write any more, `stale` stores the value that the write of the key before had, so that reads
bring what is older. Each write is answered and counted as if it were stored: it goes to a key that
no client reads. `short` stores an empty value, so that it gets fewer bytes than the client has
sent.
`refused` is `lost`, but the first of these writes is answered by an error, in the text protocol.
"""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from itertools import count
from typing import NamedTuple

# A request of the binary protocol: its magic byte, the opcode of `set`, and its header.
_BINARY, _SET, _HEADER = 0x80, 1, struct.Struct(">BBHBBHIIQ")


class Request(NamedTuple):
    """A command of a client: what comes before its key, the key, and what comes after it.

    Only a write has a key here; of any other command all is in `head`.
    """

    head: bytes
    key: bytes = b""
    tail: bytes = b""
    value: bytes = b""


class Liar:
    """The lie about each write, over all connections."""

    def __init__(self, lie: str, honest_writes: int) -> None:
        self._lie, self._honest_writes = lie, honest_writes
        self._writes, self._lock = count(), threading.Lock()
        self._last: dict[bytes, Request] = {}

    def passed_on(self, asked: Request) -> Request | None:
        """The write that the server gets; None if it is refused."""
        with self._lock:
            older = self._last.get(asked.key, asked)
            self._last[asked.key] = asked
            number = next(self._writes)
        if number < self._honest_writes:
            return asked
        if self._lie == "refused" and number == self._honest_writes:
            return None
        if self._lie == "short":
            return emptied(asked)
        if self._lie == "stale":
            # Only the value: the request says whether it is answered, and by which number.
            same = len(older.value) == len(asked.value)
            return asked._replace(value=older.value) if same else older
        return asked._replace(key=b"~" + asked.key[1:])


def emptied(asked: Request) -> Request:
    """The same write of an empty value."""
    if asked.head[0] == _BINARY:
        fields = list(_HEADER.unpack_from(asked.head))
        fields[6] -= len(asked.value)
        return asked._replace(head=_HEADER.pack(*fields) + asked.head[_HEADER.size :], value=b"")
    words = asked.tail.split()
    words[2 if asked.head == b"set " else 0] = b"0"
    return asked._replace(tail=b" " + b" ".join(words) + b"\r\n", value=b"\r\n")


def first_request(data: bytes) -> tuple[Request, int] | None:
    """The first command of what a client has sent, and its length; None if it is not whole."""
    if data[0] == _BINARY:
        return first_binary(data)
    line, end, _ = data.partition(b"\r\n")
    words = line.split()
    if not end or words[0] not in {b"set", b"ms"}:
        return (Request(line + end), len(line + end)) if end else None
    size = int(words[4] if words[0] == b"set" else words[2]) + 2
    begin = len(line) + 2
    if len(data) < begin + size:
        return None
    verb, key, rest = line.split(b" ", 2)
    value = data[begin : begin + size]
    return Request(verb + b" ", key, b" " + rest + end, value), begin + size


def first_binary(data: bytes) -> tuple[Request, int] | None:
    """The same in the binary protocol."""
    if len(data) < _HEADER.size:
        return None
    _, opcode, key_bytes, extra_bytes, _, _, body_bytes, _, _ = _HEADER.unpack_from(data)
    size, key_at = _HEADER.size + body_bytes, _HEADER.size + extra_bytes
    if len(data) < size:
        return None
    if opcode != _SET:
        return Request(data[:size]), size
    key_end = key_at + key_bytes
    return Request(data[:key_at], data[key_at:key_end], b"", data[key_end:size]), size


def requests(client: socket.socket) -> Iterator[Request]:
    """The commands that a client sends."""
    data = b""
    while more := client.recv(1 << 16):
        data += more
        while data and (first := first_request(data)):
            yield first[0]
            data = data[first[1] :]


def serve(client: socket.socket, server: socket.socket, liar: Liar) -> None:
    """Pass commands on; lie in those that write."""
    with contextlib.suppress(OSError):
        for request in requests(client):
            if passed_on := liar.passed_on(request) if request.key else request:
                server.sendall(b"".join(passed_on))
            else:
                client.sendall(b"SERVER_ERROR out of memory storing object\r\n")
        server.shutdown(socket.SHUT_WR)


def answer(server: socket.socket, client: socket.socket) -> None:
    """Pass replies on."""
    with contextlib.suppress(OSError):
        while data := server.recv(1 << 16):
            client.sendall(data)
        client.shutdown(socket.SHUT_WR)


def free_port() -> int:
    """A free port."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def reached(port: int, memcached: subprocess.Popen[bytes]) -> socket.socket:
    """A connection to the memcached, once it listens."""
    while memcached.poll() is None:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port))
    raise SystemExit("memcached ended")


def serve_all(listener: socket.socket, behind: int, liar: Liar) -> None:
    """Serve each client that connects, until the listener is shut down."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", behind))
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(client, server, liar), daemon=True).start()
            threading.Thread(target=answer, args=(server, client), daemon=True).start()


@contextlib.contextmanager
def lying(lie: str, honest_writes: int, behind: str) -> Generator[str]:
    """The address of a liar before the memcached at `behind`; threads of this process serve it."""
    port, liar = int(behind.rpartition(":")[2]), Liar(lie, honest_writes)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve_all, args=(listener, port, liar), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # it wakes the thread
            thread.join()


def main(lie: str, honest_writes: int, port: int) -> None:
    """Serve until it is killed; the memcached ends with it."""
    behind = free_port()
    words = ["memcached", "-l", "127.0.0.1", "-p", str(behind), "-U", "0", "-t", "1", "-u", "root"]
    memcached = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words])
    reached(behind, memcached).close()
    with socket.create_server(("127.0.0.1", port)) as listener:
        serve_all(listener, behind, Liar(lie, honest_writes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
