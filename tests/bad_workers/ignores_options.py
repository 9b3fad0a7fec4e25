"""A worker that ignores its options: plain text protocol always. With `honest`, it obeys them."""

import socket
import sys

from bad_worker import READY, done, requests, say

ITEMS = 100
SIZE = 100
NOOP = b"\x80\x0a" + bytes(22)


class Player:
    """One connection, and what the caller wanted of it."""

    def __init__(self, request: dict) -> None:
        host, port = request["servers"][0].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        honest = "honest" in sys.argv
        options = request["options"] if honest else {}
        self.wire = request["wire"] if honest else "text"
        self.stored = False
        self.size = SIZE // 10 if options.get("compression") == "on" else SIZE
        self.each = 2 if options.get("local_cache") == "on" else 1

    def store(self, request: dict) -> dict:
        """Items of its own; the tape does not matter here."""
        self.stored = True
        sets = [
            b"set k%d 0 0 %d\r\n%s\r\n" % (n, self.size, b"v" * self.size) for n in range(ITEMS)
        ]
        self.ask(b"".join(sets), b"STORED\r\n" * ITEMS)
        operations = done(request["phase"], ITEMS, value_bytes=ITEMS * SIZE)["operations"]
        return {**done(request["phase"]), "operations": {"set": operations["get"]}}

    def read(self, request: dict) -> dict:
        """Reads, of which a local cache answers half."""
        count = request["ops"]
        # A connection that has begun in text stays so.
        if self.wire == "binary" and not self.stored:
            self.ask(NOOP, b"\x81\x0a" + bytes(22))
        else:
            for _ in range(count // self.each):
                self.ask(b"get nothing\r\n", b"END\r\n")
        return done(request["phase"], count)

    def ask(self, sent: bytes, wanted: bytes) -> None:
        """Send, and wait for as many bytes as are due."""
        self.socket.sendall(sent)
        got = b""
        while len(got) < len(wanted):
            chunk = self.socket.recv(1 << 16)
            assert chunk, "the server has gone"
            got += chunk
        assert got == wanted, got


player = None
for heard in requests():
    if heard["type"] == "hello":
        say({**READY, "capabilities": ["text", "binary", "get", "set"]})
    elif heard["type"] == "prepare":
        player = Player(heard)
        say(READY)
    elif heard["type"] == "run" and player:
        say(player.store(heard) if heard["phase"] == "prefill" else player.read(heard))
    elif heard["type"] == "bye":
        break
