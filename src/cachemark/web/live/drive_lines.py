"""Lines of `cachemark-engine drive --json-lines` as events of a live page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import msgspec

from cachemark.model.errors import DECODE_ERRORS
from cachemark.web.live.events import (
    MAX_NAME,
    MAX_REASON,
    Answers,
    Ended,
    Event,
    Position,
    SecondEnded,
    Started,
    TrialEnded,
    fitting,
)
from cachemark.web.live.log import EventLog
from cachemark.web.live.process_identity import own_identity

# The results have histograms: a few hundred kB.
_MAX_LINE_BYTES = 16 * 2**20
_MEASURE = "measure"
_CLIENT = "native"


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin", tag_field="event"):
    """How the window is played."""

    server: str
    connections: int
    depth: int
    open_loop: bool
    duration_ms: int | None = None


class Second(msgspec.Struct, frozen=True, kw_only=True, tag="second", tag_field="event"):
    """One second of a phase. `failed` counts since the phase began."""

    phase: str
    second: int
    rate: float
    failed: int
    p50_ns: float | None = None
    p99_ns: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="event"):
    """The whole window. `problem`: why the exit status is 1."""

    rate: float
    failed: int
    p50_ns: float | None = None
    p99_ns: float | None = None
    cpu_us_per_op: float | None = None
    problem: str | None = None
    warnings: list[str] = msgspec.field(default_factory=list[str])


_decoder = msgspec.json.Decoder(Begin | Second | Result)


def follow(stream: IO[bytes], log: EventLog) -> None:
    """Write events until the stream ends."""
    log.write(_started(0))
    drive = Drive()
    while text := stream.readline(_MAX_LINE_BYTES):
        for event in drive.events(text):
            log.write(event)
    log.write(Ended(interrupted=not drive.is_complete))


class Drive:
    """A drive, as its lines tell it."""

    def __init__(self) -> None:
        self.is_complete = False
        self._cell = [_CLIENT, "", "", ""]
        self._seconds = 0

    def events(self, text: bytes) -> Iterator[Event]:
        """The events of a line; none if it is no line of a drive."""
        try:
            line = _decoder.decode(text)
        except DECODE_ERRORS:
            return
        if isinstance(line, Begin):
            yield self._begin(line)
        elif isinstance(line, Second):
            yield from self._second(line)
        else:
            self.is_complete = True
            yield from self._result(line)

    def _begin(self, line: Begin) -> Started:
        self._seconds = -(-(line.duration_ms or 0) // 1000)
        loop = "open loop" if line.open_loop else "closed loop"
        load = f"{loop}, {line.connections} connections, depth {line.depth}"
        self._cell = [_CLIENT, line.server[:MAX_NAME], "drive", load]
        return _started(self._seconds)

    def _second(self, line: Second) -> Iterator[Event]:
        is_measured = line.phase == _MEASURE
        number = line.second if is_measured else 0
        phase = line.phase[:MAX_NAME]
        yield Position(number=number, total=self._seconds, what=f"{phase}, second {line.second}")
        if is_measured:
            yield SecondEnded(
                cell=self._cell,
                second=line.second,
                rate=line.rate,
                p50=line.p50_ns,
                p99=line.p99_ns,
                errors=line.failed,
            )

    def _result(self, line: Result) -> Iterator[Event]:
        if line.warnings:
            yield Answers(lines=fitting(line.warnings))
        yield TrialEnded(
            cell=self._cell,
            block=0,
            verdict="failed" if line.problem else "VALID",
            reason=(line.problem or "")[:MAX_REASON],
            rate=line.rate,
            p50=line.p50_ns,
            p99=line.p99_ns,
            client_cpu_us=line.cpu_us_per_op,
            errors=line.failed,
        )


def _started(seconds: int) -> Started:
    """The drive is shown as long as this process lives, or until its lines end."""
    pid, start = own_identity()
    return Started(pid=pid, process_start=start, unit="second", total=seconds, ranks_by_rate=True)
