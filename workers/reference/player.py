"""Plays a share of the tape on one connection, and counts what came of it."""

import itertools
import math
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from connection import FAILURES, Connection, kind_of
from histogram import encode
from tape import Operation, Tape

Message = dict[str, Any]
SECOND_NS = 1_000_000_000


class Player:
    """A share of the tape and a connection. Raises OSError when the server cannot be reached."""

    def __init__(self, tape: Tape, segment: tuple[int, int], server: str, timeout_s: float) -> None:
        self.tape, (self.share, self.of) = tape, segment
        self.script = [Operation(tape, record) for record in tape.records[self.share :: self.of]]
        self.server, self.timeout_s = server, timeout_s
        self.connection: Connection | None = Connection(server, timeout_s)
        self.forget()

    def forget(self) -> None:
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.errors: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.times: defaultdict[str, list[int]] = defaultdict(list)
        self.reconnects = 0

    def run(
        self, *, phase: str, start_unix_ns: int = 0, ops: int | None = None,
        duration_ms: int | None = None,
        stopped: Callable[[], bool], tell: Callable[[Message], None],
    ) -> Message:  # fmt: skip
        """Play one phase and return its `done`."""
        self.forget()
        script = self.prefill() if phase == "prefill" else itertools.cycle(self.script)
        time.sleep(max(0, start_unix_ns - time.time_ns()) / 1e9)
        used = resource.getrusage(resource.RUSAGE_SELF)
        start = now = told = time.perf_counter_ns()
        end = math.inf if duration_ms is None else start + duration_ms * 1_000_000
        for operation in itertools.islice(script, ops):
            if now >= end or stopped():
                break
            now = self.perform(operation)
            if now >= told + SECOND_NS:
                tell({"type": "progress", "ops": sum(c["ok"] for c in self.counts.values())})
                told = now
        sent, barriers = now, self.end_quiet()
        now = time.perf_counter_ns() if barriers else now
        spent = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "type": "done", "phase": phase, "elapsed_ns": now - start,
            "send_elapsed_ns": sent - start, "max_in_flight": int(now > start),
            "operations": {kind: self.figures(kind) for kind in self.counts},
            "reconnects": self.reconnects, "barriers": barriers,
            "cpu_user_ns": int((spent.ru_utime - used.ru_utime) * 1e9),
            "cpu_system_ns": int((spent.ru_stime - used.ru_stime) * 1e9),
        }  # fmt: skip

    def prefill(self) -> Iterator[Operation]:
        for k in range(self.share, self.tape.prefilled, self.of):
            yield Operation(self.tape, (4, 0, 1, k, self.tape.lengths[k], self.tape.exptime_s))

    def perform(self, operation: Operation) -> int:
        """Do one operation, count it under its kind, and return the instant of its end."""
        counts = self.counts[operation.kind]
        counts["attempts"] += 1
        began = time.perf_counter_ns()
        try:
            count, failed = self.connected().ask(operation, self.tape), ""
        except FAILURES as error:
            count, failed = Counter[str](), kind_of(error)
            self.disconnect()  # what comes next on it may be the answer to this one
        now = time.perf_counter_ns()
        if failed:
            self.errors[operation.kind][failed] += 1
        elif count["wrong_values"]:
            counts["wrong_values"] += 1  # and nothing else: it is no operation, and has no time
        else:
            counts.update(count, ok=1, busy_ns=now - began)
        if not count["wrong_values"] and failed in ("", "timeout"):
            self.times[operation.kind].append(now - began)
        return now

    def connected(self) -> Connection:
        if self.connection is None:
            self.connection = Connection(self.server, self.timeout_s)
            self.reconnects += 1
        return self.connection

    def disconnect(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None

    def end_quiet(self) -> int:
        """End operations that had no reply by a command that has one: how many were sent."""
        if self.connection is None or not any(kind.endswith("noreply") for kind in self.counts):
            return 0
        try:
            self.connection.ask(Operation(self.tape, (10, 0, 0, 0, 0, 0)), self.tape)
        except FAILURES:
            self.disconnect()
        return 1

    def figures(self, kind: str) -> Message:
        times = encode(self.times[kind]) if self.times[kind] else None
        own = {**self.counts[kind], "errors": self.errors[kind]}
        return {"ok": 0, **own, "response": times, "service": times}
