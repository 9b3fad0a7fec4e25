"""The reference worker: PROTOCOL.md and docs/tape.md in plain Python, one connection, no library.

A template and a test double: get and set, one at a time; all else is answered `unsupported`.
"""

import base64
import json
import platform
import socket
import struct
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

KINDS = {(1, 0): "get", (4, 0): "set"}  # by verb and flags


class UnsupportedError(Exception):
    """What this worker cannot do; the text is the answer's reason."""


class Tape:
    def __init__(self, path):
        data = Path(path).read_bytes()
        head = struct.unpack_from("<8s2I21Q", data) if len(data) >= 184 else ()
        if head[:4] != (b"CMTAPE\0\0", 2, 184, len(data)):
            raise ValueError(f"{path}: not a whole tape of version 2")
        (_, keys, self.prefill, ops, _, pool, _, offsets_at, keys_at, _, lengths_at, pool_at,
         ops_at, _, times_at, self.exptime, _, self.group, counters, thinks) = head[4:]  # fmt: skip
        at = struct.unpack_from(f"<{keys + 1}I", data, offsets_at)
        self.keys = [data[keys_at + at[k] : keys_at + at[k + 1]] for k in range(keys)]
        self.lengths = struct.unpack_from(f"<{keys}I", data, lengths_at)
        self.pool = data[pool_at : pool_at + pool]
        self.ops = list(struct.iter_unpack("<BBHIII", data[ops_at : ops_at + 16 * ops]))
        if times_at or thinks or counters or any(op[:2] not in KINDS for op in self.ops):
            raise UnsupportedError("get and set in a closed loop are all I play")

    def value(self, k, length):
        begin = (k * 786433 + length * 97) % (len(self.pool) - length + 1)
        return self.pool[begin : begin + length]


def histogram(values_ns):
    """HdrHistogram V2: counts by bucket as zigzag LEB128, a run of zeros as its negative length."""
    shifts = [(value, max(0, value.bit_length() - 11)) for value in values_ns]
    body, expected = bytearray(), 0
    for index, count in sorted(Counter((s << 10) + (value >> s) for value, s in shifts).items()):
        for number in (2 * (index - expected) - 1, 2 * count):
            for shift in range(0, number.bit_length() if number > 0 else 0, 7):
                more = number >> shift + 7 > 0
                body.append(number >> shift & 127 | more << 7)
        expected = index + 1
    head = struct.pack(">4i2qd", 0x1C849313, len(body), 0, 3, 1, 10**11, 1.0)
    packed = zlib.compress(head + body)
    return base64.b64encode(struct.pack(">2i", 0x1C849314, len(packed)) + packed).decode()


class Worker:
    def hello(self, _request):
        return {"type": "ready", "protocol": 2, "client": "reference", "library": "none",
                "language": "python", "runtime": f"Python {platform.python_version()}",
                "library_version": "1", "capabilities": ["text", *KINDS.values()]}  # fmt: skip

    def prepare(self, request):
        servers, timeout_s = request["servers"], request.get("timeout_ms", 1000) / 1000
        if any(request.get(name, 1) != 1 for name in ("threads", "connections", "depth")):
            raise UnsupportedError("one thread, connection and operation at a time")
        odd = request.get("options") or "unix:" in "".join(servers)
        if odd or (len(servers), request.get("wire", "text")) != (1, "text"):
            raise UnsupportedError("one server over TCP, the text protocol, no options")
        self.tape, (self.share, self.shares) = Tape(request["tape"]), request.get("segment", (0, 1))
        self.socket = socket.create_connection(servers[0].rsplit(":", 1), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")
        return {"type": "ready"}

    def run(self, request):
        tape, limit = self.tape, request.get("ops") or sys.maxsize
        ops = [op for j, op in enumerate(tape.ops) if j // tape.group % self.shares == self.share]
        if request["phase"] == "prefill":
            mine = range(self.share, tape.prefill, self.shares)
            ops, limit = [(4, 0, 1, k, tape.lengths[k], tape.exptime) for k in mine], len(mine)
        counts, errors = ({kind: Counter() for kind in KINDS.values()} for _ in range(2))
        times = {kind: [] for kind in counts}
        time.sleep(max(0, request.get("start_unix_ns", 0) - time.time_ns()) / 1e9)
        start = now = told = time.perf_counter_ns()
        end, played = start + 1_000_000 * (request.get("duration_ms") or 10**9), 0
        while ops and played < limit and now < end:
            op = ops[played % len(ops)]
            kind, played, began = KINDS[op[:2]], played + 1, time.perf_counter_ns()
            try:
                failure = self.play(op, counts[kind])
            except OSError as error:  # later replies could not be told apart: give up
                failure, limit = "timeout" if isinstance(error, TimeoutError) else "connection", 0
            now = time.perf_counter_ns()
            counts[kind]["attempts"] += 1
            if failure:
                (counts if failure == "wrong_values" else errors)[kind][failure] += 1
            else:
                counts[kind].update(ok=1, keys=1, busy_ns=now - began)
                times[kind].append(now - began)
            if now - told > 1_000_000_000:
                told, _ = now, say({"type": "progress", "ops": played})
        blobs = {kind: histogram(times[kind]) for kind in times}
        return {"type": "done", "phase": request["phase"], "elapsed_ns": now - start,
                "send_elapsed_ns": now - start, "max_in_flight": 1,
                "operations": {kind: {"ok": 0, **counts[kind], "errors": errors[kind],
                                      "response": blobs[kind], "service": blobs[kind]}
                               for kind in counts if counts[kind]["attempts"]}}  # fmt: skip

    def play(self, op, counts):
        """Play a record; return what went wrong with it, if anything did."""
        verb, _, _, k, length, exptime = op
        key, value = self.tape.keys[k], self.tape.value(k, length)
        store = b"set %b 0 %d %d\r\n%b\r\n" % (key, exptime, length, value)
        line = self.ask(store if verb == 4 else b"get %b\r\n" % key)
        if line.startswith(b"VALUE "):
            value = self.replies.read(int(line.split()[3]) + 2)[:-2]
            if self.replies.readline() != b"END\r\n" or value != self.tape.value(k, len(value)):
                return "wrong_values"
        elif line != (b"STORED\r\n" if verb == 4 else b"END\r\n"):
            return "server"
        counts.update(value_bytes=len(value), key_bytes=len(key))
        return counts.update(hits=line.startswith(b"VALUE "), misses=line == b"END\r\n")

    def ask(self, request):
        self.socket.sendall(request)
        if line := self.replies.readline():
            return line
        raise ConnectionError("closed by the server")


def say(answer):
    print(json.dumps(answer), flush=True)


worker = Worker()
for message in map(json.loads, sys.stdin):
    if message["type"] == "bye":
        break
    try:
        if message["type"] != "stop":  # a run is over by the time that this is read
            say(getattr(worker, message["type"])(message))
    except UnsupportedError as error:
        say({"type": "unsupported", "reason": str(error)})
    except (OSError, ValueError, struct.error) as error:
        kind = "connect" if isinstance(error, OSError) else "tape"
        say({"type": "error", "kind": kind, "text": str(error)})
