"""Lines of `cachemark-engine drive --json-lines` as events of a live page.

The engine measures and counts. The verdict is as for any trial without the server's counters.
"""

from collections.abc import Iterator
from typing import IO

import msgspec

from cachemark.analysis.statistics.figures import client_cpu_us, rate, response_ns
from cachemark.analysis.verdict import TrialVerdict, judge
from cachemark.model.errors import DECODE_ERRORS
from cachemark.model.events import (
    MAX_NAME,
    MAX_REASON,
    AnswersTold,
    Ended,
    Event,
    Position,
    SecondEnded,
    Started,
    TrialEnded,
    fitting,
)
from cachemark.model.experiment import Load, Workload
from cachemark.model.histogram import HistogramError
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats
from cachemark.runs.events.log import EventLog, own_identity

# The results have histograms: a few hundred kB.
_MAX_LINE_BYTES = 16 * 2**20
_MEASURE = "measure"
_CLIENT = "native"
_NAME = "drive"


class DriveBegin(msgspec.Struct, frozen=True, kw_only=True, tag="begin", tag_field="event"):
    """How the window is played."""

    server: str
    connections: int
    depth: int
    open_loop: bool
    duration_ms: int | None = None


class DriveSecond(msgspec.Struct, frozen=True, kw_only=True, tag="second", tag_field="event"):
    """One second of a phase. `failed` counts since the phase began."""

    phase: str
    second: int
    rate: float
    failed: int
    p50_ns: float | None = None
    p99_ns: float | None = None


class DriveResult(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="event"):
    """The whole window, as it was measured. `problem`: why the exit status is 1."""

    measure: Done
    problem: str | None = None


_decoder = msgspec.json.Decoder(DriveBegin | DriveSecond | DriveResult)


def follow(stream: IO[bytes], log: EventLog) -> None:
    """Write events until the stream ends."""
    log.write(_started(0))
    drive = Drive()
    while text := stream.readline(_MAX_LINE_BYTES):
        for event in drive.events(text):
            log.write(event)
    log.write(Ended(interrupted=not drive.is_complete))


class Drive:
    """The state of a drive, from its lines."""

    def __init__(self) -> None:
        self.is_complete = False
        self._cell = [_CLIENT, "", "", ""]
        self._load = Load(name=_NAME)
        self._seconds = 0

    def events(self, text: bytes) -> Iterator[Event]:
        """The events of a line; none if it is no line of a drive."""
        try:
            yield from self._events(_decoder.decode(text))
        except (*DECODE_ERRORS, HistogramError):
            return

    def _events(self, line: DriveBegin | DriveSecond | DriveResult) -> Iterator[Event]:
        if isinstance(line, DriveBegin):
            yield self._begin(line)
        elif isinstance(line, DriveSecond):
            yield from self._second(line)
        else:
            yield from self._result(line)
            self.is_complete = True

    def _begin(self, line: DriveBegin) -> Started:
        self._seconds = -(-(line.duration_ms or 0) // 1000)
        loop = "open loop" if line.open_loop else "closed loop"
        load = f"{loop}, {line.connections} connections, depth {line.depth}"
        self._cell = [_CLIENT, line.server[:MAX_NAME], _NAME, load]
        self._load = Load(
            name=_NAME,
            schedule="poisson" if line.open_loop else "closed",
            connections=line.connections,
            depth=line.depth,
        )
        return _started(self._seconds)

    def _second(self, line: DriveSecond) -> Iterator[Event]:
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

    def _result(self, line: DriveResult) -> Iterator[Event]:
        measure = line.measure
        verdict = _judged(measure, self._load)
        operations = list(measure.operations.values())
        withheld = {each.percent for each in verdict.withheld if not each.kind}
        counts = not line.problem and verdict.verdict == "VALID"
        p50, p99 = (
            response_ns(operations, percent) if counts and percent not in withheld else None
            for percent in (50.0, 99.0)
        )
        told = [found.text for found in verdict.findings if found.weight in ("note", "withheld")]
        if told:
            yield AnswersTold(lines=fitting(told))
        yield TrialEnded(
            cell=self._cell,
            block=0,
            verdict="failed" if line.problem else verdict.verdict,
            reason=(line.problem or "; ".join(verdict.reasons))[:MAX_REASON],
            rate=rate(operations, measure.elapsed_ns) if counts else None,
            p50=p50,
            p99=p99,
            client_cpu_us=client_cpu_us(measure) if counts else None,
            errors=sum(operation.attempts - operation.ok for operation in operations),
        )


def _judged(measure: Done, load: Load) -> TrialVerdict:
    """The verdict, without the counters of the server: it may have other clients."""
    silent = ServerStats({})
    return judge(
        measure,
        workload=Workload(name=_NAME),
        load=load,
        before=silent,
        after=silent,
        shared_server=True,
    )


def _started(seconds: int) -> Started:
    """The drive is shown as long as this process lives, or until its lines end."""
    pid, start = own_identity()
    return Started(pid=pid, process_start=start, unit="second", total=seconds, ranks_by_rate=True)
