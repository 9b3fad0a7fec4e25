"""A memcached in a few lines that misbehaves on request, as known servers do."""

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Generator

_STORING = ("set", "add", "replace", "append", "prepend", "cas")
# The commands that may take `noreply`.
_NOREPLY = (*_STORING, "delete", "incr", "decr", "touch")

# More than the checks before a first trial send.
_SETS_TO_HANG_UP = 4000


class Store:
    """The state that all connections share. `ways` are the deviations, by name."""

    def __init__(self, ways: frozenset[str], limit_items: int) -> None:
        self.ways = ways
        self.limit_items = limit_items
        self.items: dict[bytes, tuple[bytes, bytes, int]] = {}
        self.lock = threading.Lock()
        self.counts = dict.fromkeys(
            ("cmd_get", "cmd_set", "get_hits", "get_misses", "delete_hits", "delete_misses"), 0
        )
        self.cas = 0
        self.hung_up = False

    def put(self, key: bytes, flags: bytes, value: bytes) -> None:
        self.cas += 1
        self.items.pop(key, None)
        if len(self.items) >= self.limit_items:
            newest = "evicts_newest" in self.ways
            self.items.pop(next(reversed(self.items) if newest else iter(self.items)))
        self.items[key] = (flags, value, self.cas)

    def hangs_up_now(self) -> bool:
        """True once, when this number of sets has come."""
        with self.lock:
            due = not self.hung_up and self.counts["cmd_set"] >= _SETS_TO_HANG_UP
            self.hung_up |= due
            return due


class _Handler(socketserver.BaseRequestHandler):
    request: socket.socket

    def handle(self) -> None:
        store: Store = self.server.store  # type: ignore[attr-defined]
        buffer = b""
        with contextlib.suppress(OSError):
            while chunk := self.request.recv(1 << 20):
                buffer += chunk
                if buffer[:1] == b"\x80":
                    # No binary protocol: said at once, not by a silence that has to be waited for.
                    return
                out = b""
                while (done := self._one(store, buffer)) is not None:
                    reply, used, more = done
                    out += reply
                    buffer = buffer[used:]
                    if buffer and "hangs_up" in store.ways and store.hangs_up_now():
                        return  # what the buffer holds is not stored
                    if not more:
                        break
                if out:
                    self.request.sendall(out)
                if out.endswith(b"ERROR\r\n") and "closes_on_error" in store.ways:
                    return

    def _one(self, store: Store, buffer: bytes) -> tuple[bytes, int, bool] | None:
        """Reply, bytes used, and whether to look at what follows; None where more is needed."""
        line, end, rest = buffer.partition(b"\r\n")
        if not end:
            return None
        words = line.decode("latin-1").split()
        used, data = len(line) + 2, b""
        if words and words[0] in _STORING and len(words) >= 5:
            size = int(words[4])
            if len(rest) < size + 2:
                self.waited = True
                return None
            data, used = rest[:size], used + size + 2
        stalls = "stalls" in store.ways and getattr(self, "waited", False)
        self.waited = False
        with store.lock:
            return self._reply(store, line, words, data), used, not stalls

    def _reply(self, store: Store, line: bytes, words: list[str], data: bytes) -> bytes:
        if not words or words[0] in [w.removeprefix("no_") for w in store.ways if w[:3] == "no_"]:
            return b"ERROR\r\n"
        quiet = words[-1] == "noreply"
        if "wants_space" in store.ways and words[0] in _NOREPLY and quiet == (line[-1:] == b" "):
            return b"ERROR\r\n"  # a space belongs to each line without `noreply`, and to no other
        reply = self._answer(store, words[:-1] if quiet else words, data)
        return b"" if quiet and "answers_noreply" not in store.ways else reply

    def _answer(self, store: Store, words: list[str], data: bytes) -> bytes:
        verb, keys = words[0], [word.encode("latin-1") for word in words[1:]]
        counts = store.counts
        if verb == "version":
            return b"VERSION deviant\r\n"
        if verb == "stats":
            told = {**counts, "limit_maxbytes": store.limit_items * 10_000}
            if "untold" in store.ways:
                del told["cmd_get"], told["get_hits"]
            return (
                b"".join(b"STAT %s %d\r\n" % (k.encode(), v) for k, v in told.items()) + b"END\r\n"
            )
        if verb in ("get", "gets", "gat"):
            return self._read(store, verb, keys[1:] if verb == "gat" else keys)
        if verb in _STORING:
            counts["cmd_set"] += 1
            if "counts_sets_as_deletes" in store.ways:
                counts["delete_hits"] += 1
            if "small_values" in store.ways and len(data) > 200_000:
                return b"SERVER_ERROR object too large for cache\r\n"
            return self._store(store, words, keys, data)
        return self._change(store, words, keys) if keys else b"ERROR\r\n"

    def _change(self, store: Store, words: list[str], keys: list[bytes]) -> bytes:
        verb, items, counts = words[0], store.items, store.counts
        held = items.get(keys[0])
        if verb == "delete":
            counts["delete_hits" if held else "delete_misses"] += 1
            return b"DELETED\r\n" if items.pop(keys[0], None) else b"NOT_FOUND\r\n"
        if verb == "touch" and "touch_loses" in store.ways:
            items.pop(keys[0], None)
        if verb == "touch":
            return b"TOUCHED\r\n" if held else b"NOT_FOUND\r\n"
        if verb in ("incr", "decr") and held:
            number = int(held[1]) + int(words[2]) * (1 if verb == "incr" else -1)
            store.put(keys[0], held[0], str(number).encode())
            return b"%d\r\n" % number
        return b"NOT_FOUND\r\n" if verb in ("incr", "decr") else b"ERROR\r\n"

    def _read(self, store: Store, verb: str, keys: list[bytes]) -> bytes:
        out = b""
        for key in keys:
            held = store.items.get(key)
            store.counts["cmd_get"] += 1
            store.counts["get_hits" if held else "get_misses"] += 1
            if held:
                flags, value, cas = held
                more = b" %d" % cas if verb == "gets" or "cas_in_get" in store.ways else b""
                out += b"VALUE %s %s %d%s\r\n%s\r\n" % (key, flags, len(value), more, value)
        return out + b"END\r\n"

    def _store(self, store: Store, words: list[str], keys: list[bytes], data: bytes) -> bytes:
        verb, key, flags = words[0], keys[0], keys[1]
        held = store.items.get(key)
        if (verb == "add" and held) or (verb in ("replace", "append", "prepend") and not held):
            return b"NOT_STORED\r\n"
        if verb == "cas" and (held is None or held[2] != int(words[5])):
            return b"EXISTS\r\n" if held else b"NOT_FOUND\r\n"
        if held and verb in ("append", "prepend"):
            data = held[1] + data if verb == "append" else data + held[1]
        store.put(key, flags, data)
        return b"STORED\r\n"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, store: Store) -> None:
        self.store = store
        super().__init__(("127.0.0.1", 0), _Handler)


@contextlib.contextmanager
def deviant(*ways: str, limit_items: int = 10_000) -> Generator[str]:
    """The address of a server with these deviations."""
    for way in ways:
        assert re.fullmatch(r"[a-z_]+", way)
    with _Server(Store(frozenset(ways), limit_items)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
