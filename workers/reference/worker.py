"""The reference worker: PROTOCOL.md and docs/tape.md in plain Python, one connection, no library.

A template and a test double: get and set, one at a time; for all else it answers `unsupported`.
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

KINDS = {(1, 0): "get", (4, 0): "set"}  # by verb, and whether it has no reply
# The generations that a get may bring, by the generation in its record.
RIGHT = ((0, 1, 2, 3), (1, 2, 3), (2, 1), (3, 1))


class UnsupportedError(Exception):
    """A task that this worker cannot do; the text is the answer's reason."""


class Tape:
    def __init__(self, path):
        data = Path(path).read_bytes()
        head = struct.unpack_from("<8s2I21Q", data) if len(data) >= 184 else ()
        if head[:4] != (b"CMTAPE\0\0", 2, 184, len(data)):
            raise ValueError(f"{path}: not a whole tape of version 2")
        (_, keys, self.prefill, ops, _, pool, _, offsets_at, keys_at, _, lengths_at, pool_at,
         ops_at, _, times_at, self.exptime, flags, self.group, counters,
         thinks) = head[4:]  # fmt: skip
        at = struct.unpack_from(f"<{keys + 1}I", data, offsets_at)
        self.keys = [data[keys_at + at[k] : keys_at + at[k + 1]] for k in range(keys)]
        self.lengths = struct.unpack_from(f"<{keys}I", data, lengths_at)
        self.pool = data[pool_at : pool_at + pool]
        self.ops = list(struct.iter_unpack("<BBHIII", data[ops_at : ops_at + 16 * ops]))
        self.lanes, self.any_generation, self.prefilled = flags >> 32, False, False
        kinds = {(verb, flag & 1) for verb, flag, *_ in self.ops}
        if times_at or thinks or counters or not kinds <= KINDS.keys():
            raise UnsupportedError("get and set in a closed loop are all I play")

    def value(self, k, length, generation=0):
        place = k * 786433 + length * 97 + generation * 262147
        begin = place % (len(self.pool) - length + 1)
        return self.pool[begin : begin + length]

    def right(self, k, value, told):
        """Whether a get of key k may bring this value; `told` is the generation in its record."""
        may_be = RIGHT[0 if self.any_generation else told] if self.lanes else (0,)
        return any(value == self.value(k, len(value), each) for each in may_be)


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


class Results:
    """The results of operations, by kind."""

    def __init__(self):
        self.counts, self.errors = ({kind: Counter() for kind in KINDS.values()} for _ in range(2))
        self.times = {kind: [] for kind in KINDS.values()}

    def add(self, kind, failure, took_ns):
        self.counts[kind]["attempts"] += 1
        if failure:
            counts = self.counts if failure == "wrong_values" else self.errors
            counts[kind][failure] += 1
        else:
            self.counts[kind].update(ok=1, keys=1, busy_ns=took_ns)
            self.times[kind].append(took_ns)

    def total(self, name):
        return sum(counts[name] for counts in self.counts.values())

    def operations(self, timed=True):
        blobs = {kind: histogram(self.times[kind]) if timed else None for kind in self.times}
        return {kind: {"ok": 0, **counts, "errors": self.errors[kind],
                       "response": blobs[kind], "service": blobs[kind]}
                for kind, counts in self.counts.items() if counts["attempts"]}  # fmt: skip


class Worker:
    slices = None  # between `begin_slices` and `end_slices`: the counted results and the lead-ins

    def hello(self, _request):
        return {"type": "ready", "protocol": 2, "client": "reference", "library": "none",
                "language": "python", "runtime": f"Python {platform.python_version()}",
                "library_version": "1",
                "capabilities": ["text", "slices", *KINDS.values()]}  # fmt: skip

    def prepare(self, request):
        self.slices, self.servers = None, request["servers"]
        self.timeout_s = request.get("timeout_ms", 1000) / 1000
        if any(request.get(name, 1) != 1 for name in ("threads", "connections", "depth")):
            raise UnsupportedError("one thread, connection and operation at a time")
        odd = request.get("options") or "unix:" in "".join(self.servers)
        if odd or (len(self.servers), request.get("wire", "text")) != (1, "text"):
            raise UnsupportedError("one server over TCP, the text protocol, no options")
        self.tape, (self.share, self.shares) = Tape(request["tape"]), request.get("segment", (0, 1))
        # If it plays the tape in another way, it cannot know which write was the last.
        self.tape.any_generation = self.tape.lanes != self.shares
        self.ops = [op for j, op in enumerate(self.tape.ops)
                    if j // self.tape.group % self.shares == self.share]  # fmt: skip
        self.connect()
        return {"type": "ready"}

    def connect(self):
        self.socket = socket.create_connection(self.servers[0].rsplit(":", 1), self.timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def run(self, request):
        tape, ops, limit = self.tape, self.ops, request.get("ops") or sys.maxsize
        self.slices = None
        if request["phase"] == "prefill":
            tape.any_generation |= tape.prefilled  # the first prefill failed, and may still arrive
            tape.prefilled = True
            mine = range(self.share, tape.prefill, self.shares)
            ops, limit = [(4, 0, 1, k, tape.lengths[k], tape.exptime) for k in mine], len(mine)
        results, played = Results(), 0
        start, now = told, _ = self.start(request)
        end = start + 1_000_000 * (request.get("duration_ms") or 10**9)
        while ops and played < limit and now < end and (self.replies or not played):
            now = self.play(ops[played % len(ops)], results)
            played += 1
            if now - told > 1_000_000_000:
                told, _ = now, say({"type": "progress", "ops": played})
        return {"type": "done", "phase": request["phase"], "elapsed_ns": now - start,
                "send_elapsed_ns": now - start, "max_in_flight": 1,
                "operations": results.operations()}  # fmt: skip

    def begin_slices(self, _request):
        self.slices, self.played, self.elapsed_ns = (Results(), Results()), 0, 0
        return {"type": "ready"}

    def slice(self, request):
        if not self.slices:
            return failure("protocol", "slice before begin_slices")
        counted, lead_in = self.slices
        before = counted.total("ok"), counted.total("attempts"), lead_in.total("attempts")
        start, now = self.start(request)
        end, lead_in_end = (
            start + 1000 * request.get(name, 0) for name in ("length_us", "lead_in_us")
        )
        # The begin of the counted part, even if there was no CPU until now.
        begun, ended, half = lead_in_end if now >= lead_in_end else None, start, None
        while self.ops and now < end:
            op, self.played = self.ops[self.played % len(self.ops)], self.played + 1
            now = ended = self.play(op, lead_in if begun is None else counted)
            if begun is None and now >= lead_in_end:
                begun = now
            elif begun is not None and not half and now >= (lead_in_end + end) // 2:
                half = now, counted.total("attempts") - before[1]
        begun = lead_in_end if begun is None else begun
        elapsed_ns, half = max(ended, end) - begun, half or ((lead_in_end + end) // 2, 0)
        self.elapsed_ns += elapsed_ns
        ops, attempts = counted.total("ok") - before[0], counted.total("attempts") - before[1]
        return {"type": "slice_done", "ops": ops, "errors": attempts - ops,
                "elapsed_ns": elapsed_ns, "half_ops": half[1], "half_ns": max(0, half[0] - begun),
                "lead_in_ops": lead_in.total("attempts") - before[2]}  # fmt: skip

    def end_slices(self, _request):
        if not self.slices:
            return failure("protocol", "end_slices before begin_slices")
        (counted, lead_in), self.slices = self.slices, None
        return {"type": "done", "phase": "measure", "elapsed_ns": self.elapsed_ns,
                "send_elapsed_ns": self.elapsed_ns, "max_in_flight": 1,
                "operations": counted.operations(),
                "lead_in": lead_in.operations(timed=False)}  # fmt: skip

    def start(self, request):
        """Wait for the planned start; return when it is, and the time."""
        ahead_ns = max(0, request.get("start_unix_ns", 0) - time.time_ns())
        start = time.perf_counter_ns() + ahead_ns
        time.sleep(ahead_ns / 1e9)
        return start, time.perf_counter_ns()

    def play(self, op, results):
        """Play a record and add its results; return the time of its end."""
        kind, began = KINDS[op[0], op[1] & 1], time.perf_counter_ns()
        try:
            failed = self.exchange(op, results.counts[kind])
        except OSError as error:  # later replies could not be matched: connect again
            failed = "timeout" if isinstance(error, TimeoutError) else "connection"
            self.replies = None
        now = time.perf_counter_ns()
        if failed and failed != "wrong_values":  # a failed set may still arrive
            self.tape.any_generation = True
        results.add(kind, failed, now - began)
        return now

    def exchange(self, op, counts):
        """Send a record's command; returns its failure, if any."""
        if self.replies is None:
            self.connect()
        verb, flags, _, k, length, exptime = op
        key, value = self.tape.keys[k], self.tape.value(k, length, flags >> 1)
        store = b"set %b 0 %d %d\r\n%b\r\n" % (key, exptime, length, value)
        line = self.ask(store if verb == 4 else b"get %b\r\n" % key)
        if line.startswith(b"VALUE "):
            value = self.replies.read(int(line.split()[3]) + 2)[:-2]
            right = line.split()[2] == b"0" and self.tape.right(k, value, flags >> 1)
            if self.replies.readline() != b"END\r\n" or not right:
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


def failure(kind, text):
    return {"type": "error", "kind": kind, "text": text}


worker = Worker()
for message in map(json.loads, sys.stdin):
    if message["type"] == "bye":
        break
    try:
        if message["type"] != "stop":  # the run is over before the worker reads a stop
            say(getattr(worker, message["type"])(message))
    except UnsupportedError as error:
        say({"type": "unsupported", "reason": str(error)})
    except (OSError, ValueError, struct.error) as error:
        say(failure("connect" if isinstance(error, OSError) else "tape", str(error)))
